"use strict";
// The audio of the test page, on the browser's audio thread: the microphone at the service's rate, and the loudspeaker.

// Converts samples from one rate to another. Place and filter go on from block to block: a resampler that begins again with
// every block of 128 would run 8 ms a second too fast, and click.
class Resampler {
  constructor(from, to) {
    const divide = (one, other) => (other ? divide(other, one % other) : one);
    const common = divide(from, to);
    [this.step, this.places] = [from / common, to / common];
    // Above this part of the input's band nothing fits into the output.
    this.pass = Math.min(1, to / from) * 0.94;
    this.half = Math.ceil(24 / Math.min(1, to / from));
    this.filters = new Map();
    // The input around the next sample of the output; it begins with the silence before the first.
    this.held = new Float32Array(this.half);
    this.heldFrom = -this.half;
    this.count = 0;
  }

  // The filter for a sample that lies this many places behind an input sample.
  filter(place) {
    let filter = this.filters.get(place);
    if (filter) return filter;
    filter = new Float32Array(2 * this.half);
    let sum = 0;
    for (let tap = 0; tap < filter.length; tap += 1) {
      const x = tap - this.half + 1 - place / this.places;
      const turn = Math.PI * this.pass * x;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / this.half);
      filter[tap] = (x === 0 ? 1 : Math.sin(turn) / turn) * window;
      sum += filter[tap];
    }
    for (let tap = 0; tap < filter.length; tap += 1) filter[tap] /= sum;
    this.filters.set(place, filter);
    return filter;
  }

  push(input) {
    const samples = new Float32Array(this.held.length + input.length);
    samples.set(this.held);
    samples.set(input, this.held.length);
    const end = this.heldFrom + samples.length;
    const output = [];
    for (;;) {
      const at = Math.floor((this.count * this.step) / this.places);
      if (at + this.half >= end) break;
      const filter = this.filter((this.count * this.step) % this.places);
      const first = at - this.half + 1 - this.heldFrom;
      let sum = 0;
      for (let tap = 0; tap < filter.length; tap += 1) sum += filter[tap] * samples[first + tap];
      output.push(sum);
      this.count += 1;
    }
    const keepFrom = Math.floor((this.count * this.step) / this.places) - this.half + 1;
    this.held = samples.slice(keepFrom - this.heldFrom);
    this.heldFrom = keepFrom;
    return output;
  }
}

// Posts the microphone in pieces of 20 ms, 16-bit, mono.
class Capture extends AudioWorkletProcessor {
  constructor({ processorOptions: { rate } }) {
    super();
    this.resampler = new Resampler(sampleRate, rate);
    this.size = rate / 50;
    this.piece = new Int16Array(this.size);
    this.filled = 0;
  }

  process([channels]) {
    // A microphone that delivers nothing for a block is silent: its clock goes on.
    const mono = new Float32Array(channels.length ? channels[0].length : 128);
    for (const channel of channels) channel.forEach((sample, at) => { mono[at] += sample / channels.length; });
    for (const sample of this.resampler.push(mono)) {
      this.piece[this.filled] = Math.max(-1, Math.min(1, sample)) * 32767;
      this.filled += 1;
      if (this.filled < this.size) continue;
      this.port.postMessage(this.piece.buffer, [this.piece.buffer]);
      this.piece = new Int16Array(this.size);
      this.filled = 0;
    }
    return true;
  }
}

// Plays what is posted: samples, marks and "clear". Posts a mark back when all before it was played, and its level. It begins
// when enough is there to bridge a late message, or when no more has come for as long. If it runs out, it is silent. Audio that
// follows, without a mark between, came late: it posts how often. A line ends with a mark.
class Playback extends AudioWorkletProcessor {
  constructor({ processorOptions: { rate } }) {
    super();
    this.rate = rate;
    this.lead = sampleRate * 0.08;
    this.clear();
    this.port.onmessage = ({ data }) => {
      if (data === "clear") this.clear();
      else if (typeof data === "number") { this.queue.push({ mark: data }); this.ranOut = false; }
      else this.add(new Int16Array(data));
    };
    this.late = 0;
    this.level = 0;
    this.blocks = 0;
  }

  clear() {
    this.queue = [];
    this.place = 0;
    this.waiting = 0;
    this.since = 0;
    this.playing = false;
    this.ranOut = false;
    this.resampler = new Resampler(this.rate, sampleRate);
  }

  add(pieces) {
    const samples = this.resampler.push(Float32Array.from(pieces, (sample) => sample / 32768));
    if (this.ranOut) { this.late += 1; this.port.postMessage({ late: this.late }); }
    this.ranOut = false;
    if (this.waiting === 0) this.since = currentTime;
    this.waiting += samples.length;
    this.queue.push({ samples });
  }

  marks() {
    while (this.queue.length && this.queue[0].mark !== undefined) {
      this.port.postMessage({ played: this.queue.shift().mark });
      this.ranOut = false;
    }
  }

  process(_, [[output]]) {
    if (!this.playing && this.waiting > 0) this.playing = this.waiting >= this.lead || currentTime - this.since >= 0.08;
    let filled = 0;
    while (this.playing && filled < output.length) {
      this.marks();
      if (!this.queue.length) break;
      const { samples } = this.queue[0];
      const count = Math.min(samples.length - this.place, output.length - filled);
      for (let at = 0; at < count; at += 1) {
        const sample = samples[this.place + at];
        output[filled + at] = sample;
        this.level = Math.max(this.level, Math.abs(sample));
      }
      filled += count;
      this.place += count;
      this.waiting -= count;
      if (this.place >= samples.length) { this.queue.shift(); this.place = 0; }
    }
    if (this.waiting === 0) {
      this.ranOut = this.ranOut || this.playing;
      this.playing = false;
      this.marks();
    }
    this.blocks += 1;
    if (this.blocks % 16 === 0) { this.port.postMessage({ level: this.level }); this.level = 0; }
    return true;
  }
}

registerProcessor("capture", Capture);
registerProcessor("playback", Playback);
