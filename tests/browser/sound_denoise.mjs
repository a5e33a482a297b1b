// denoise on tracks, streams and nodes: each function gives what was wrong.

import { AudioError, denoise, denoiseProcessor } from "./audio.js";

const RATE = 16000;
const floats = async (name) => new Float32Array(await (await fetch(name)).arrayBuffer());
const microphone = () => navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });

function check(found, isRight, text) {
  if (!isRight) found.push(text);
}

async function refusal(found, promise, { type = AudioError, code, message }) {
  const error = await Promise.resolve(promise).then(() => null, (raised) => raised);
  check(found, error instanceof type, `${message}: raised ${error}`);
  check(found, code === undefined || error?.code === code, `${code}: code ${error?.code}`);
  check(found, message.test(error?.message ?? ""), `${message}: said ${error?.message}`);
}

/** A node in an OfflineAudioContext: the bits of Python. */
export async function bits() {
  const [noisy, clean] = [await floats("noisy.f32"), await floats("dtln_int8.f32")];
  const context = new OfflineAudioContext(1, noisy.length, RATE);
  const sound = context.createBuffer(1, noisy.length, RATE);
  sound.copyToChannel(noisy, 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  const node = await denoise(source);
  node.connect(context.destination);
  source.start();
  const output = (await context.startRendering()).getChannelData(0);
  const found = [];
  const latency = Math.round(node.latency * RATE);
  const at = output.subarray(latency).findIndex((sample, i) => sample !== clean[i]);
  check(found, latency === 384, `latency ${latency}`);
  check(found, at === -1, `sample ${at} of ${output.length} differs`);
  check(found, node.node === node && node.mix === 1 && !node.isBypassed, "what a node says of itself");
  await node.stop();
  await node.stop();
  return found;
}

/** A share of 0 is the signal as it comes, with the same latency; at another rate too. */
export async function dry() {
  const found = [];
  for (const rate of [RATE, 48000]) {
    const context = new OfflineAudioContext(1, rate, rate);
    const sound = context.createBuffer(1, rate, rate);
    const samples = Float32Array.from({ length: rate }, (_, i) => Math.sin(i / 20) / 2);
    sound.copyToChannel(samples, 0);
    const source = new AudioBufferSourceNode(context, { buffer: sound });
    const node = await denoise(source, { mix: 0 });
    node.connect(context.destination);
    source.start();
    const output = (await context.startRendering()).getChannelData(0);
    const late = Math.round(node.latency * rate);
    const at = output.subarray(late + 256).findIndex((sample, i) => sample !== samples[i + 256]);
    check(found, at === -1, `${rate} Hz: sample ${at} is another one, ${late} samples late`);
  }
  return found;
}

const level = (samples) => Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);

/** The last samples of a track, once some are not zero. */
async function heard(track, context, seconds = 0.5) {
  const input = new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([track]) });
  const analyser = new AnalyserNode(context, { fftSize: 8192 });
  input.connect(analyser);
  const samples = new Float32Array(8192);
  const until = performance.now() + 5000;
  do {
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    analyser.getFloatTimeDomainData(samples);
  } while (level(samples) === 0 && performance.now() < until);
  input.disconnect();
  return samples;
}

/** A microphone in, a track out. */
export async function tracks() {
  const found = [];
  const clean = await denoise(microphone());
  check(found, clean.track.kind === "audio" && clean.track.readyState === "live", "a live track");
  check(found, clean.stream.getAudioTracks()[0] === clean.track, "the track of its stream");
  check(found, clean.latency > 0.02 && clean.latency < 0.2, `latency ${clean.latency}`);
  check(found, level(await heard(clean.track, clean.context)) > 0, "it is silent");
  const { context } = clean;
  await clean.setMix(0.5);
  clean.mix = 1;
  await clean.bypass();
  await clean.bypass(false);
  check(found, clean.mix === 1 && !clean.isBypassed, "what it is set to");
  await Promise.all([clean.stop(), clean.stop()]);
  check(found, clean.track.readyState === "ended" && clean.isStopped, "its track has ended");
  check(found, context.state === "closed", "its context is closed");
  check(found, clean.source.readyState === "live", "the microphone is the caller's");
  await refusal(found, clean.bypass(), { code: "stopped", message: /call denoise again/ });
  const again = await denoise(clean.source, { model: "gtcrn" });
  check(found, again.track.readyState === "live", "another model");
  again.source.dispatchEvent(new Event("ended")); // unplugged
  await new Promise((resolve) => again.track.addEventListener("ended", resolve, { once: true }));
  check(found, again.isStopped, "it ends with its source");
  clean.source.stop();
  return found;
}

export async function misuse() {
  const found = [];
  const stream = await microphone();
  const [track] = stream.getAudioTracks();
  await refusal(found, denoise("microphone"), { type: TypeError, message: /a MediaStreamTrack, a MediaStream or an AudioNode/ });
  await refusal(found, denoise(null), { type: TypeError, message: /not null/ });
  await refusal(found, denoise(new MediaStream()), { code: "source", message: /no audio track/ });
  await refusal(found, denoise(stream, { modle: "dtln" }), { type: TypeError, message: /no option 'modle'; there are model, weights/ });
  await refusal(found, denoise(stream, { model: "rnnoise" }), { type: TypeError, message: /no model 'rnnoise'; there are dtln/ });
  await refusal(found, denoise(stream, { weights: "int4" }), { type: TypeError, message: /dtln has no weights 'int4'; it has int8, int16/ });
  await refusal(found, denoise(stream, { mix: 2 }), { type: TypeError, message: /mix is a number from 0 to 1, not 2/ });
  await refusal(found, denoise(stream, { model: "nowhere.rnn" }), { type: Error, message: /nowhere.rnn could not be loaded: HTTP 404/ });
  await refusal(found, denoise(stream, { model: new Uint8Array(64) }), { type: Error, message: /plan/ });
  const denied = Promise.reject(new DOMException("no", "NotAllowedError"));
  await refusal(found, denoise(denied), { code: "denied", message: /the microphone is not allowed/ });
  const missing = navigator.mediaDevices.getUserMedia({ audio: { deviceId: { exact: "nobody" } } });
  await refusal(found, denoise(missing), { code: "missing", message: /as the constraints ask/ });
  const context = new AudioContext();
  await context.close();
  await refusal(found, denoise(stream, { context }), { code: "closed", message: /the AudioContext is closed/ });
  track.stop();
  await refusal(found, denoise(track), { code: "ended", message: /the track has ended/ });
  await refusal(found, denoise(stream), { code: "ended", message: /the track has ended/ });
  const canvas = document.createElement("canvas");
  canvas.getContext("2d");
  const [video] = canvas.captureStream().getVideoTracks();
  await refusal(found, denoise(video), { code: "source", message: /a track of audio is needed, not of video/ });
  return found;
}

/** As livekit-client calls a processor. */
export async function liveKit() {
  const found = [];
  const audioContext = new AudioContext();
  const processor = denoiseProcessor();
  const [one] = (await microphone()).getAudioTracks();
  const [two] = (await microphone()).getAudioTracks();
  await processor.init({ kind: "audio", track: one, audioContext });
  const first = processor.processedTrack;
  check(found, processor.name === "webrnn-denoise" && first.readyState === "live", "init");
  await processor.restart({ kind: "audio", track: two, audioContext });
  check(found, first.readyState === "ended" && processor.processedTrack.readyState === "live", "restart");
  const sender = new RTCPeerConnection().addTrack(one);
  await sender.replaceTrack(processor.processedTrack);
  check(found, sender.track === processor.processedTrack, "what a connection sends");
  await processor.destroy();
  await processor.destroy();
  check(found, processor.processedTrack === undefined && audioContext.state !== "closed", "the room's context stays open");
  for (const track of [one, two]) track.stop();
  return found;
}

/** Milliseconds from the call to the first sample that was denoised, with the files in the cache. */
export async function timeToFirstSample({ prefetch = false } = {}) {
  const stream = await microphone();
  if (prefetch) await denoise.prefetch();
  const began = performance.now();
  const clean = await denoise(stream);
  const resolved = performance.now() - began;
  const reader = new MediaStreamTrackProcessor({ track: clean.track }).readable.getReader();
  let first = null;
  for (let i = 0; i < 300 && first === null; i++) {
    const { value } = await reader.read();
    const samples = new Float32Array(value.numberOfFrames);
    value.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    value.close();
    if (samples.some((sample) => sample !== 0)) first = performance.now() - began;
  }
  await clean.stop();
  stream.getTracks().forEach((track) => track.stop());
  return { resolved, first };
}
