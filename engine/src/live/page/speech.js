"use strict";
// The browser's own voice and ear (Web Speech API). Nothing here knows the socket or the page.

// Characters as the service counts them.
const charsOf = (text) => [...text].length;

// Speaks lines one after the other, sentence by sentence: Chromium stops long utterances of some voices.
// `on.start(index)`, `on.word()`, `on.stop(index, heard)` with the part that was heard, `on.fail(message)`.
const newMouth = (on) => {
  const synth = window.speechSynthesis;
  const queue = [];
  let line = null;
  let lang = "";
  let turn = 0;
  let watch = 0;
  let last = { text: "", at: 0 };
  const sentences = (text) => {
    try {
      return [...new Intl.Segmenter(lang || undefined, { granularity: "sentence" }).segment(text)].map((one) => one.segment);
    } catch { return [text]; }
  };
  // Voices that do not report words: about 14 characters a second.
  const heardNow = () => {
    const { place, sentence, word, since } = line;
    const guess = word === null && since ? Math.floor((performance.now() - since) * 0.014) : word || 0;
    return line.text.slice(0, place + Math.min(guess, sentence.length));
  };
  const finish = (heard) => {
    const { index, text } = line;
    last = { text, at: performance.now() };
    line = null;
    turn += 1;
    clearTimeout(watch);
    on.stop(index, heard);
  };
  const nextLine = () => {
    const next = queue.shift();
    if (!next) return;
    line = { ...next, rest: sentences(next.text), place: 0, sentence: "", word: null, since: 0, begun: false };
    nextSentence();
  };
  const nextSentence = () => {
    line.place += line.sentence.length;
    line.sentence = line.rest.shift() || "";
    if (!line.sentence) { finish(line.text); nextLine(); return; }
    line.word = null;
    line.since = 0;
    const mine = (turn += 1);
    const current = (act) => (event) => { if (mine === turn) act(event); };
    const done = () => { clearTimeout(watch); nextSentence(); };
    const fail = () => { on.fail("The browser's voice does not speak; the text is below."); done(); };
    const utterance = new SpeechSynthesisUtterance(line.sentence);
    // Kept, because Chromium collects utterances that nobody refers to, and their events with them.
    line.utterance = utterance;
    if (lang) utterance.lang = lang;
    utterance.onstart = current(() => {
      clearTimeout(watch);
      line.since = performance.now();
      if (!line.begun) { line.begun = true; on.start(line.index); }
      on.word();
    });
    utterance.onboundary = current((event) => { line.word = event.charIndex; on.word(); });
    utterance.onend = current(done);
    utterance.onerror = current(fail);
    // A browser without any voice raises no event at all.
    watch = setTimeout(current(fail), 5000);
    synth.speak(utterance);
  };
  return {
    language: (tag) => { lang = tag; },
    say: (index, text) => { queue.push({ index, text }); if (!line) nextLine(); },
    speaking: () => line !== null,
    // Stops at once. Nothing was heard of the lines that wait.
    cut: () => {
      const waiting = queue.splice(0);
      if (line) { const heard = heardNow(); finish(heard); synth.cancel(); }
      for (const { index } of waiting) on.stop(index, "");
    },
    // The recogniser hears the loudspeaker, too: the page cannot take this voice out of its audio. So it goes on listening,
    // and words that mostly repeat the line being spoken, or just spoken, are not the person's.
    echoes: (text) => {
      const spoken = line ? line.text : performance.now() - last.at < 1500 ? last.text : "";
      const words = (some) => some.toLowerCase().match(/[\p{L}\p{N}']+/gu) || [];
      const known = new Set(words(spoken));
      const said = words(text);
      return known.size > 0 && said.filter((word) => known.has(word)).length * 2 > said.length;
    },
  };
};

// Listens until it is stopped. `on.interim(text)`, `on.final(text)`, `on.fail(message)`.
const newEar = (on) => {
  const Recognition = window.SpeechRecognition || window.webkitSpeechRecognition;
  const REFUSED = "This browser does not allow speech recognition here, so you are not heard. Type below, or open a new link in Chrome, Edge or Safari.";
  const failures = {
    // The page has the microphone by now: what fails is the recognition.
    "not-allowed": REFUSED,
    "service-not-allowed": REFUSED,
    "audio-capture": "unheard",
    network: "The browser's speech recognition cannot be reached, so you are not heard. Type below.",
    "language-not-supported": "The browser does not recognise the assistant's language, so you are not heard. Type below.",
  };
  let wanted = false;
  let recognition = null;
  const listen = () => {
    const begun = performance.now();
    recognition = new Recognition();
    recognition.continuous = true;
    recognition.interimResults = true;
    if (ear.language) recognition.lang = ear.language;
    recognition.onresult = (event) => {
      let interim = "";
      for (let at = event.resultIndex; at < event.results.length; at += 1) {
        const text = event.results[at][0].transcript;
        if (event.results[at].isFinal) on.final(text.trim()); else interim += text;
      }
      on.interim(interim.trim());
    };
    recognition.onerror = (event) => {
      const why = failures[event.error];
      if (wanted && why) { wanted = false; on.fail(why); }
    };
    // It ends after some silence.
    recognition.onend = () => { if (wanted) setTimeout(() => { if (wanted) listen(); }, performance.now() - begun < 1000 ? 1000 : 0); };
    recognition.start();
  };
  const ear = {
    language: "",
    start: () => { if (!wanted) { wanted = true; listen(); } },
    stop: () => { wanted = false; if (recognition) recognition.abort(); },
  };
  return ear;
};

// What this browser lacks for speech, in words; empty if it has everything.
const speechLacks = () => {
  if (!(window.SpeechRecognition || window.webkitSpeechRecognition)) {
    return "This browser has no speech recognition. Type below, or open a new link in Chrome, Edge or Safari.";
  }
  if (!window.speechSynthesis || !window.SpeechSynthesisUtterance) {
    return "This browser has no voices. Type below, or open a new link in Chrome, Edge or Safari.";
  }
  return "";
};
