// What compiles against the types of webrnn/audio and webrnn/vad, and what does not.

import { AudioError, denoise, denoiseProcessor, detectSpeech, segments, segmentsOf, wakeWord } from "webrnn/audio";
import { MicVAD, NonRealTimeVAD, utils } from "webrnn/vad";

/** Of livekit-client 2.23. */
interface TrackProcessor {
  name: string;
  init: (opts: { kind: "audio"; track: MediaStreamTrack; audioContext: AudioContext; element?: HTMLMediaElement }) => Promise<void>;
  restart: (opts: { kind: "audio"; track: MediaStreamTrack; audioContext: AudioContext }) => Promise<void>;
  destroy: () => Promise<void>;
  processedTrack?: MediaStreamTrack;
}

export async function sound(track: MediaStreamTrack, node: AudioNode, sender: RTCRtpSender): Promise<void> {
  const clean = await denoise(navigator.mediaDevices.getUserMedia({ audio: true }), { model: "gtcrn", mix: 0.5 });
  await sender.replaceTrack(clean.track);
  clean.mix = 0.3;
  const seconds: number = clean.latency;
  (await denoise(node)).connect(node.context.destination);
  await clean.load("own.rnn");
  await denoise.prefetch({ model: new Uint8Array(4), context: node.context });
  const processor: TrackProcessor = denoiseProcessor({ bypass: true });
  const speech = await detectSpeech(clean, {
    onSpeechEnd: (audio) => console.log(audio.length / 16000, seconds),
    onFrame: ({ isSpeech }, frame) => console.log(isSpeech.toFixed(2), frame[0], processor.name),
    redemptionMs: 500,
  });
  speech.setOptions({ minSpeechFrames: 3 });
  const [{ start }] = await segments(new Float32Array(16000), 16000, { returnSeconds: true });
  segmentsOf([0.1, 0.9], { length: 1000 + start });
  await wakeWord(track, { words: { a: "a.rnn", b: { plan: new Uint8Array(4), patience: 2 } }, onDetected: (name, score) => console.log(name, score) });
  const vad = await MicVAD.new({ model: "v5", onSpeechEnd: async (audio) => void utils.encodeWAV(audio), startOnLoad: false });
  await vad.start();
  for await (const { audio, start: from, end } of (await NonRealTimeVAD.new()).run(new Float32Array(4), 16000)) console.log(audio, from, end);
  try {
    await speech.stop();
  } catch (error) {
    if (error instanceof AudioError && error.code === "denied") console.log(error.message);
  }
  // @ts-expect-error: a node has no track
  console.log((await denoise(node)).track);
  // @ts-expect-error: there is no such model
  await detectSpeech(track, { weights: "int4" });
  // @ts-expect-error: words are needed
  await wakeWord(track, {});
  // @ts-expect-error: no such option
  await MicVAD.new({ onSpeachEnd: () => {} });
}
