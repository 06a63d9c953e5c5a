// The line of time: the caller above, the assistant below, newest at the right.
const newTrace = (canvas) => {
  const STEP = 4;
  const levels = [];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let now = { caller: 0, assistant: 0 };
  let meter = null;
  let samples = null;
  let timer = 0;
  const draw = () => {
    const pen = canvas.getContext("2d");
    const scale = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== width * scale) { canvas.width = width * scale; canvas.height = height * scale; }
    const colours = getComputedStyle(canvas);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = colours.getPropertyValue("--line");
    pen.fillRect(0, height / 2, width, 1);
    const bar = (x, wide, { caller, assistant }) => {
      pen.fillStyle = colours.getPropertyValue("--caller");
      pen.fillRect(x, height / 2 - 1 - caller * (height / 2 - 2), wide, caller * (height / 2 - 2));
      pen.fillStyle = colours.getPropertyValue("--assistant");
      pen.fillRect(x, height / 2 + 2, wide, assistant * (height / 2 - 3));
    };
    if (still.matches) { bar(0, width / 8, now); return; }
    levels.slice(-Math.ceil(width / STEP)).reverse().forEach((one, nth) => bar(width - STEP * (nth + 1), STEP - 1, one));
  };
  const sample = () => {
    if (meter) {
      meter.getByteTimeDomainData(samples);
      const power = samples.reduce((sum, one) => sum + ((one - 128) / 128) ** 2, 0) / samples.length;
      now.caller = Math.min(1, Math.sqrt(power) * 4);
    }
    levels.push(now);
    if (levels.length > 1000) levels.splice(0, 500);
    draw();
    now = { caller: 0, assistant: now.assistant * 0.8 < 0.05 ? 0 : now.assistant * 0.8 };
  };
  addEventListener("resize", draw);
  requestAnimationFrame(draw);
  return {
    hear: (stream) => {
      const audio = new AudioContext();
      meter = audio.createAnalyser();
      meter.fftSize = 1024;
      samples = new Uint8Array(meter.fftSize);
      audio.createMediaStreamSource(stream).connect(meter);
    },
    // The Web Speech API gives no samples of its voice: a word that begins is all that can be shown.
    word: () => { now.assistant = 0.5 + Math.random() * 0.4; },
    run: () => { timer = timer || setInterval(sample, 50); },
    stop: () => { clearInterval(timer); timer = 0; meter = null; draw(); },
  };
};
