// DTLN and Silero on the audio thread for a long time, offline or in real time: what was heard, as sums over its bits, and
// what memory it took.

import { AudioModels } from "./audio.js";
import { RATE, floats } from "./audio_page.js";

/** The pages may look at the memory whenever `waiting` is a number of seconds, and then call `goOn`. */
export const progress = { waiting: null, goOn: null };

function pauseAt(context, seconds) {
  context.suspend(seconds).then(async () => {
    await new Promise((resolve) => {
      progress.waiting = seconds;
      progress.goOn = resolve;
    });
    progress.waiting = null;
    context.resume();
  });
}

/** `pauses` are seconds at which rendering offline waits. */
export async function soak({ seconds, isPlayed, pauses = [], rate = RATE, channels = 1, sound = "noisy.f32" }) {
  const context = isPlayed
    ? new AudioContext({ sampleRate: rate })
    : new OfflineAudioContext(channels, (seconds + 1) * rate, rate);
  if (isPlayed) await context.suspend(); // until all is there
  await context.audioWorklet.addModule(new URL("audio_soak_probe.js", import.meta.url));
  const audio = await AudioModels.create(context, channels > 1 ? { channels: "each", channelCount: channels } : {});
  const [results, loads, found] = [[], [], []];
  audio.addEventListener("result", ({ detail: { sample, values } }) => results.push([sample, values[0]]));
  audio.addEventListener("load", ({ detail }) => loads.push(detail));
  audio.addEventListener("error", ({ detail }) => found.push(`${detail.name}: ${detail.error}`));
  await audio.load("vad", new URL("audio/silero.rnn", import.meta.url));
  await audio.load("denoise", new URL("audio/dtln.rnn", import.meta.url));
  const latency = await audio.latency();
  const probe = new AudioWorkletNode(context, "probe", {
    numberOfOutputs: 0,
    channelCount: 2 * channels,
    channelCountMode: "explicit",
    channelInterpretation: "discrete",
    processorOptions: { channels: 2 * channels, seconds },
  });
  const rows = [];
  const isDone = new Promise((resolve) => {
    probe.port.onmessage = ({ data }) => {
      rows.push({ ...data, sums: [...data.sums] });
      if (rows.length === seconds) resolve();
    };
  });
  // Channels of what goes in, then channels of what comes out, in one input: both are summed from the same frame on.
  const both = new ChannelMergerNode(context, { numberOfInputs: 2 * channels });
  const samples = await floats(sound);
  const buffer = context.createBuffer(channels, samples.length / channels, rate);
  for (let i = 0; i < channels; i++) buffer.copyToChannel(samples.subarray(i * buffer.length, (i + 1) * buffer.length), i);
  const source = new AudioBufferSourceNode(context, { buffer, loop: true });
  for (const [offset, node] of [[0, source], [channels, audio.node]]) {
    const split = new ChannelSplitterNode(context, { numberOfOutputs: channels });
    node.connect(split);
    for (let i = 0; i < channels; i++) split.connect(both, i, offset + i);
  }
  both.connect(probe);
  source.connect(audio.node).connect(context.destination);
  source.start();
  for (const second of isPlayed ? [] : pauses) pauseAt(context, second);
  if (isPlayed) await context.resume();
  else await context.startRendering();
  await isDone;
  if (!isPlayed) await audio.latency(); // all results were posted before the answer
  else {
    await context.suspend();
    await audio.close();
    await context.close();
  }
  return { found, rows, results, latency, load: loads.at(-1) ?? null };
}
