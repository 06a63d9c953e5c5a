// A call on its line of time: the waveform, the player, one cursor through waveform and transcript.
import { api } from './app.js';

const SVG = 'http://www.w3.org/2000/svg';

async function draw(trace) {
  const answer = await api(`/calls/${trace.dataset.trace}/waveform`).catch(() => null);
  if (!answer?.ok) return;
  const { channels, peaks_per_second: rate } = await answer.json();
  const length = Number(trace.dataset.length);
  const wave = trace.querySelector('.wave');
  wave.replaceChildren();
  channels.forEach(({ peaks }, lane) => {
    const most = Math.max(0.05, ...peaks);
    // Not more lines than the screen can show.
    const each = Math.max(1, Math.floor(peaks.length / 600));
    let path = '';
    const width = Math.max(0.7, ((each / rate) * 700_000) / length);
    for (let start = 0; start < peaks.length; start += each) {
      const peak = Math.max(...peaks.slice(start, start + each));
      const x = ((start / rate) * 1_000_000) / length;
      const height = Math.max(0.6, (peak / most) * 22);
      const middle = lane === 0 ? 32 : 80;
      path += `M${x.toFixed(1)} ${(middle - height).toFixed(1)}h${width.toFixed(1)}v${(height * 2).toFixed(1)}h-${width.toFixed(1)}z`;
    }
    const line = document.createElementNS(SVG, 'path');
    line.setAttribute('d', path);
    line.setAttribute('class', lane === 0 ? 'f-caller' : 'f-assistant');
    wave.append(line);
  });
  trace.classList.add('ready');
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function play(trace) {
  const audio = document.querySelector('.player audio');
  const button = document.querySelector('[data-play]');
  const cursor = trace.querySelector('.cursor');
  const rows = [...document.querySelectorAll('.talk li')];
  const length = Number(trace.dataset.length) / 1000;
  const told = document.querySelector('[data-clock]');
  // Together: the page jumps if its own player appears after the browser's has gone.
  audio.parentElement.classList.add('ready');
  for (const hidden of document.querySelectorAll('[data-play], [data-clock], [data-rate]')) hidden.hidden = false;
  cursor.hidden = false;
  let frame;

  function show(seconds) {
    cursor.style.left = `${Math.min(100, (seconds / length) * 100)}%`;
    told.textContent = `${clock(seconds)} / ${clock(length)}`;
    const ms = seconds * 1000;
    for (const row of rows) row.classList.toggle('now', ms > 0 && ms >= Number(row.dataset.start) && ms < Number(row.dataset.end));
  }
  function tick() {
    show(audio.currentTime);
    frame = requestAnimationFrame(tick);
  }
  function seek(seconds, start) {
    audio.currentTime = Math.max(0, Math.min(seconds, length));
    show(audio.currentTime);
    if (start) audio.play();
  }
  const toggle = () => (audio.paused ? audio.play() : audio.pause());
  audio.addEventListener('play', () => {
    button.textContent = 'Pause';
    cancelAnimationFrame(frame);
    tick();
  });
  audio.addEventListener('pause', () => {
    button.textContent = 'Play';
    cancelAnimationFrame(frame);
    show(audio.currentTime);
  });
  audio.addEventListener('error', () => (told.textContent = 'The recording could not be read.'));
  button.addEventListener('click', toggle);
  document.querySelector('[data-rate] select').addEventListener('change', (event) => (audio.playbackRate = Number(event.target.value)));
  trace.addEventListener('click', (event) => {
    const box = trace.getBoundingClientRect();
    seek(((event.clientX - box.left) / box.width) * length, false);
  });
  document.addEventListener('click', (event) => {
    const at = event.target.closest('[data-seek]');
    if (at) seek(Number(at.dataset.seek) / 1000, true);
  });
  document.addEventListener('keydown', (event) => {
    if (event.target.closest('input, textarea, select, button, a, summary, dialog') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === ' ') {
      event.preventDefault();
      toggle();
    }
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') seek(audio.currentTime + (event.key === 'ArrowLeft' ? -5 : 5), false);
  });
  show(0);
}

function start() {
  const trace = document.querySelector('.trace[data-recorded]');
  if (!trace) {
    for (const button of document.querySelectorAll('.talk [data-seek]')) button.disabled = true;
    return;
  }
  draw(trace);
  if (document.querySelector('.player')) play(trace);
}

start();
document.addEventListener('replaced', start);
