// Analysers that listen to a track, a stream or a node, which is not changed.

import { AudioModels } from "./audio_models.js";
import { prepare } from "./audio_plans.js";
import { awaitedSource, contextFor, requireOpen, resumeSoon, sourceOf } from "./audio_source.js";

const report = globalThis.reportError ?? ((error) => setTimeout(() => Promise.reject(error)));

/** Calls a function of the page's; if it fails, the page is told, and listening goes on. */
export function tell(callback, ...values) {
  try {
    callback?.(...values)?.catch?.(report);
  } catch (error) {
    report(error);
  }
}

/** Waits until all results are here: an answer comes behind them. What was rendered offline is closed, but answers. */
export async function allResults(models) {
  const { context } = models;
  if (context.state !== "closed" || typeof context.startRendering === "function") await models.latency();
}

/** AudioModels that listen to a source: {models, connect, whenEnded, close}. `ready` is a promise that the plans are. */
export async function listen(who, source, { context, audio, chosen, ready }) {
  const isPromise = typeof source?.then === "function";
  const known = isPromise ? null : sourceOf(who, source);
  const own = known?.kind === "node" ? { context: requireOpen(who, known.node.context), isOwn: false } : contextFor(who, context);
  if (known?.kind === "node" && context && context !== own.context) throw new TypeError(`${who}: the node is of another context`);
  const early = AudioModels.create(own.context, { variant: audio.wasm ? undefined : chosen.variant, ...audio });
  const close = async () => {
    const models = await early;
    await models.close();
    if (own.isOwn && own.context.state !== "closed") await own.context.close();
  };
  try {
    const [found, models] = await Promise.all([awaitedSource(who, source), early, ready ?? prepare(chosen, own.context.sampleRate)]);
    if (found.kind !== "node") return listenTo(found.track, own.context, models, close);
    if (found.node.context === own.context) return listenTo(found.node, own.context, models, close);
    await close(); // a promise of a node: its context is another one
    return await listen(who, found.node, { audio, chosen, ready });
  } catch (error) {
    close().catch(() => {});
    throw error;
  }
}

function listenTo(from, context, models, closeModels) {
  const isTrack = typeof from.readyState === "string";
  const input = isTrack ? new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([from]) }) : from;
  const silence = new GainNode(context, { gain: 0 }); // some engines run only what leads to a destination
  let ended = () => {};
  const connect = () => {
    resumeSoon(context);
    input.connect(models.node).connect(silence).connect(context.destination);
    if (isTrack) from.addEventListener("ended", ended);
  };
  const close = async () => {
    if (isTrack) from.removeEventListener("ended", ended);
    silence.disconnect();
    try {
      input.disconnect(models.node);
    } catch (error) {
      if (error.name !== "InvalidAccessError") throw error; // it never was connected, or somebody has done it
    }
    await closeModels();
  };
  return { models, connect, close, whenEnded: (action) => (ended = action) };
}
