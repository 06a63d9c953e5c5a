// The assistant's own voice: the microphone goes to the service, and its audio to the loudspeaker, both on the audio thread
// (worklets.js). Nothing here knows the page.

// What this browser lacks for it, in words; empty if it has everything.
const audioLacks = () => (window.AudioContext && window.AudioWorkletNode ? "" : "This browser has no audio worklets. Type below, or open the link in a newer browser.");

// Made while a button is pressed: otherwise browsers let no page make a sound. None if the worklets cannot be loaded.
const newSound = async (script) => {
  const context = new AudioContext();
  context.resume().catch(() => {});
  try { await context.audioWorklet.addModule(script); } catch { context.close(); return null; }
  return context;
};

// `on.audio(buffer)` has 20 ms of the microphone, `on.played(mark)` a mark whose audio was heard, `on.level(level)` the loudest
// sample of the loudspeaker, from 0 to 1, `on.late(times)` how often its audio came too late so far.
const newLine = (context, microphone, rate, on) => {
  const options = { processorOptions: { rate }, outputChannelCount: [1] };
  const capture = new AudioWorkletNode(context, "capture", { ...options, numberOfInputs: 1 });
  const playback = new AudioWorkletNode(context, "playback", { ...options, numberOfInputs: 0 });
  const source = context.createMediaStreamSource(microphone);
  capture.port.onmessage = ({ data }) => on.audio(data);
  playback.port.onmessage = ({ data }) => {
    if (data.level !== undefined) { on.level(data.level); return; }
    if (data.late !== undefined) { on.late(data.late); return; }
    // What was handed to the device is heard later.
    setTimeout(() => on.played(data.played), 1000 * (context.outputLatency || context.baseLatency || 0));
  };
  // It says nothing itself, but what is connected to nothing is not run.
  source.connect(capture).connect(context.destination);
  playback.connect(context.destination);
  return {
    play: (samples) => playback.port.postMessage(samples, [samples]),
    mark: (mark) => playback.port.postMessage(mark),
    clear: () => playback.port.postMessage("clear"),
    end: () => { source.disconnect(); context.close(); },
  };
};
