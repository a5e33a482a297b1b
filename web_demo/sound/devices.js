// Loudspeakers and microphones that are not there, not allowed or not answering: each says what a person can do.

const PATIENCE = 6000; // ms in which a device answers
const QUIET = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };

/** Something about a device; `next` is what to try. */
export class DeviceError extends Error {
  name = "DeviceError";

  constructor(message, next, cause) {
    super(message, { cause });
    this.next = next;
  }
}

/** What `promise` gives, or `late()` thrown if it takes longer: there are browsers in which some never settle. */
export async function within(promise, late, ms = PATIENCE) {
  let timer;
  const patience = new Promise((_, reject) => (timer = setTimeout(() => reject(late()), ms)));
  try {
    return await Promise.race([promise, patience]);
  } finally {
    clearTimeout(timer);
  }
}

const noOutput = (cause) =>
  new DeviceError(
    "no audio device answers, so nothing can be played",
    "connect headphones or a loudspeaker, or choose one in the sound settings of this computer, then press again. The pictures and the other parts of this page work without.",
    cause,
  );

/** Waits until a context plays; where there is no device, some browsers say so and others never answer. */
export async function running(context) {
  try {
    await within(context.resume(), noOutput);
  } catch (error) {
    throw error instanceof DeviceError ? error : noOutput(error);
  }
  if (context.state !== "running") throw noOutput();
}

const MICROPHONES = {
  NotAllowedError: [
    "this page may not use it",
    "allow the microphone for this page, by the symbol beside its address or in the settings of the browser, then press again.",
  ],
  NotFoundError: ["there is none", "connect a microphone, then press again; or play the clip."],
  NotReadableError: [
    "it gives no sound",
    "end other programs that use it, check that it is switched on, then press again.",
  ],
  NotSupportedError: [
    "this browser connects no microphone at this sample rate",
    "choose the rate of the device above, then press again.",
  ],
};

/** Whether a microphone is only refused at the rate of the context, as Firefox does. */
export const isRefusedRate = (error) => error.cause?.name === "NotSupportedError";

/** A problem with a microphone, in words. */
function microphoneError(error) {
  if (error instanceof DeviceError) return error;
  const [message, next] = MICROPHONES[error.name] ?? [error.message, "play the clip, or choose another microphone in the browser."];
  return new DeviceError(message, next, error);
}

/** The sound of the microphone as it is, without what browsers do to voices. */
async function microphoneStream(channelCount) {
  if (!navigator.mediaDevices)
    throw new DeviceError(
      "browsers give microphones only to pages that are served safely",
      "open this page by https, or as localhost on this computer.",
    );
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { ...QUIET, channelCount } });
  } catch (error) {
    throw microphoneError(error);
  }
}

/** What the microphone hears, as a node of a context. */
export class Microphone {
  #tracks = [];

  /** `gone` is called when the device is. */
  async open(context, channels, gone) {
    const stream = await microphoneStream(channels);
    this.#tracks = stream.getTracks();
    for (const track of this.#tracks) track.onended = gone;
    try {
      return new MediaStreamAudioSourceNode(context, { mediaStream: stream });
    } catch (error) {
      this.close();
      throw microphoneError(error);
    }
  }

  close() {
    for (const track of this.#tracks) track.stop();
    this.#tracks = [];
  }
}
