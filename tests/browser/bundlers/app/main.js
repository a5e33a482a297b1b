import { Model, ShapeError } from "webrnn";
import { AudioModels, denoise, detectSpeech } from "webrnn/audio";
import { ModelWorker } from "webrnn/worker";
import { WorkerPool } from "webrnn/worker_pool";

const x = new Float32Array(12).fill(1);
const described = (error) => [error.name, error instanceof ShapeError, error.message];

async function model() {
  const loaded = await Model.load("gru.rnn");
  const stream = loaded.stream();
  const { y } = stream.step({ x });
  try {
    stream.step({ X: x });
  } catch (error) {
    return { y: [...y], error: described(error) };
  }
}

async function worker() {
  const loaded = await ModelWorker.load("gru.rnn");
  const stream = await loaded.stream();
  const { y } = await stream.step({ x });
  const error = await stream.step({ X: x }).catch(described);
  loaded.terminate();
  return { y: [...y], error };
}

async function pool() {
  const loaded = await WorkerPool.load("gru.rnn", { workers: 1 });
  const handle = loaded.open();
  loaded.submit(handle, { x });
  const { y } = (await loaded.tick()).get(handle);
  loaded.submit(handle, { x: x.subarray(1) });
  const error = await loaded.tick().catch(described);
  loaded.dispose();
  return { y: [...y], error };
}

/** What a node in an offline context makes of some noise. */
async function rendered(connect) {
  const context = new OfflineAudioContext(1, 8192, 16000);
  const buffer = new AudioBuffer({ length: 8192, sampleRate: 16000 });
  buffer.copyToChannel(Float32Array.from({ length: 8192 }, (_, i) => Math.sin(i * i) / 4), 0);
  const source = new AudioBufferSourceNode(context, { buffer });
  (await connect(source, context)).connect(context.destination);
  source.start();
  return [...(await context.startRendering()).getChannelData(0)];
}

/** The plan of the package, and the same file from elsewhere. */
async function audio() {
  const own = await rendered(async (source, context) => {
    const models = await AudioModels.create(context);
    const loaded = models.load("denoise", "dtln_int8.rnn");
    source.connect(models.node);
    await loaded;
    return models.node;
  });
  return { own, packaged: await rendered((source) => denoise(source)) };
}

/** A microphone, denoised, and what is heard of it. */
window.microphone = async () => {
  const clean = await denoise(navigator.mediaDevices.getUserMedia({ audio: true }));
  const frame = await new Promise((resolve, onError) => detectSpeech(clean, { onFrame: resolve, onError }));
  const state = [clean.track.kind, clean.track.readyState];
  await clean.stop();
  return [...state, frame.isSpeech >= 0 && frame.isSpeech <= 1];
};

window.found = Promise.all([model(), worker(), pool(), audio()]);
