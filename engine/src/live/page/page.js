(() => {
  const at = (id) => document.getElementById(id);
  const show = (id, yes) => { at(id).hidden = !yes; };
  const status = (text) => { at("status").textContent = text; };
  const state = (kind, word) => { at("state").dataset.state = kind; at("state").textContent = word; };
  // What does not work, by its part: why nothing is spoken does not hide why nobody is heard.
  const problems = {};
  const problem = (text, part = "page") => {
    problems[part] = text;
    const all = Object.values(problems).filter(Boolean).join(" ");
    at("problem").textContent = all;
    show("problem", all !== "");
  };
  const clock = (ms) => Math.floor(ms / 60000) + ":" + String(Math.floor(ms / 1000) % 60).padStart(2, "0");
  const MICROPHONE = {
    denied: "The microphone is blocked for this page. Allow it in the browser's address bar or site settings, then press Talk. You can also type.",
    missing: "No microphone was found. Connect one, then press Talk. You can also type.",
    // It is there, and its level moves.
    unheard: "The microphone works, but the browser's speech recognition gets no sound from it, so you are not heard. Type below, or open a new link in Chrome, Edge or Safari.",
    insecure: "Browsers give the microphone only to pages on https or localhost. Open the link there, or type.",
  };
  const LINK = {
    token_used: "This link was used. It opens one conversation: ask the person who sent it for a new one.",
    over: "The conversation of this page is over. To begin another one, start again.",
    token_expired: "This link has expired. Ask the person who sent it for a new one.",
    invalid_token: "This link is not complete, or was changed. Open it exactly as it was sent.",
  };
  const ENDING = {
    user_hung_up: "You hung up.",
    assistant_ended: "The assistant said goodbye.",
    transferred: "On the telephone, you would now be put through to a person.",
    hung_up_by_request: "Somebody at the service hung up.",
    silence: "Nothing was heard from you for a while, so the assistant hung up.",
    turn_limit: "The conversation reached its limit of turns.",
    duration_limit: "The time of this link is over.",
    cost_limit: "The conversation reached its spending limit.",
    transcript_limit: "The conversation reached its limit of text.",
    tool_loop: "The assistant kept calling tools instead of answering.",
    assistant_repeating: "The assistant repeated itself.",
    model_failed: "The assistant's model did not answer.",
    speech_failed: "The assistant could not hear or speak any more.",
    media_lost: "The audio was lost.",
    aborted: "The service stopped the conversation.",
  };
  // Why a socket was closed in the middle, by its code.
  const CLOSED = {
    1001: "The service was stopped. What was said until then is in the record.",
    1006: "The connection was lost. Check your network.",
    1008: "The service ended the conversation, because too much came at once.",
    1009: "The service ended the conversation, because a message was too large.",
    1011: "The service has an internal error. What was said until then is in the record.",
  };
  // Beside the page, wherever the service is; the token stays in the query.
  const address = new URL("voice-test/socket" + location.search, new URL(".", location.href));
  const script = new URL("voice-test/audio.js", new URL(".", location.href));
  const restart = new URL("voice-test/restart" + location.search, new URL(".", location.href));
  const NOTICE = {
    service: "The assistant speaks with its own voice. Your microphone goes to this service and the assistant's speech recognition. The conversation may be recorded.",
    browser: "Uses your browser's speech recognition, which may send audio to its vendor, and your browser's voices. Headphones work best.",
  };
  const trace = newTrace(at("trace"));
  // The browser's audio, and the assistant's voice on it.
  let sound = null;
  let voice = null;
  let socket = null;
  let live = false;
  let aloud = false;
  let startedAt = 0;
  let endsAt = 0;
  let ticking = 0;
  let heardWords = "";
  // When the person's last words ended; an answer has its latency from there.
  let saidAt = 0;
  // The line that answers what was typed; of a spoken turn, the service says how long it took.
  let answer = null;
  const rows = new Map();
  let restartable = false;

  const named = (name) => {
    at("title").textContent = "Talk to " + name;
    document.title = name + " · Sidetone";
    at("thinking").querySelector("span").textContent = name;
  };
  const thinking = (yes) => {
    show("thinking", yes);
    if (yes) at("thinking").scrollIntoView({ block: "nearest" });
    if (yes) at("speaking").textContent = "thinking";
    else if (at("speaking").textContent === "thinking") at("speaking").textContent = "listening";
  };
  const line = (kind, who, text) => {
    const item = document.createElement("li");
    item.className = kind;
    const part = (name, content) => { const one = document.createElement(name); one.textContent = content; item.append(one); return one; };
    part("time", clock(performance.now() - startedAt));
    part("b", who);
    const words = part("p", text);
    const note = (content) => {
      const small = item.querySelector("small") || part("small", "");
      small.textContent = [small.textContent, content].filter(Boolean).join(" · ");
    };
    at("lines").append(item);
    item.scrollIntoView({ block: "nearest" });
    return { words, note, text };
  };
  const cutRow = (row, heard) => {
    row.words.textContent = heard;
    const rest = document.createElement("del");
    rest.textContent = row.text.slice(heard.length);
    row.words.append(rest);
    row.note("interrupted");
  };
  const latency = (row) => {
    if (!row || !saidAt) return;
    const ms = performance.now() - saidAt;
    // Under what is written at once, it says nothing.
    if (aloud || ms >= 50) row.note("answered after " + (ms / 1000).toFixed(1) + " s");
    saidAt = 0;
  };
  const send = (message) => { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };
  const interim = (text) => {
    heardWords = text;
    show("interim", text !== "");
    if (!text) return;
    at("interim").replaceChildren();
    for (const [name, content] of [["time", clock(performance.now() - startedAt)], ["b", "You"], ["span", text]]) {
      const one = document.createElement(name);
      one.textContent = content;
      at("interim").append(one);
    }
  };
  const said = (text) => {
    // A service that speaks says itself what was said.
    if (!voice) line("user", "You", text);
    send({ type: "user_text", text });
    // A service that speaks tells when it has understood.
    if (!voice) thinking(true);
  };

  const mouth = newMouth({
    start: (index) => { latency(rows.get(index)); at("speaking").textContent = "speaking"; },
    word: trace.word,
    stop: (index, heard) => {
      const row = rows.get(index);
      if (row && heard.length < row.text.length) cutRow(row, heard);
      send({ type: "heard", index, chars: charsOf(heard) });
      at("speaking").textContent = live ? "listening" : "not connected";
    },
    fail: (why) => problem(why, "mouth"),
  });
  const ear = newEar({
    interim: (text) => {
      if (text && mouth.echoes(text)) return;
      if (text) { mouth.cut(); saidAt = performance.now(); at("hearing").textContent = "speaking"; }
      interim(text);
    },
    final: (text) => {
      if (!text || !live || mouth.echoes(text)) return;
      mouth.cut();
      // Of a result that had no words on the way, only its arrival is known.
      if (!heardWords) saidAt = performance.now();
      interim("");
      at("hearing").textContent = "quiet";
      said(text.slice(0, 4000));
    },
    fail: (why) => {
      problem(MICROPHONE[why] || why, "ear");
      at("hearing").textContent = "typing";
      release();
      show("talk", true);
      at("talk").disabled = false;
    },
  });

  const tick = () => { at("left").textContent = clock(Math.max(0, endsAt - performance.now())) + " left"; };
  const release = () => {
    if (microphone) for (const track of microphone.getTracks()) track.stop();
    microphone = null;
  };
  const beginVoice = (rate) => {
    let loudAt = 0;
    at("notice").textContent = NOTICE.service;
    voice = newLine(sound, microphone, rate, {
      // A connection that takes no more loses audio instead of delaying it.
      audio: (piece) => { if (live && socket.bufferedAmount < 64000) socket.send(piece); },
      played: (mark) => send({ type: "played", mark }),
      late: (times) => { at("notice").textContent = NOTICE.service + " Pauses because its audio came late: " + times + "."; },
      level: (level) => {
        trace.voice(level);
        if (!live) return;
        // A pause within a sentence is not its end.
        if (level > 0.01) { loudAt = performance.now(); at("speaking").textContent = "speaking"; latency(answer); }
        else if (at("speaking").textContent === "speaking" && performance.now() - loudAt > 400) at("speaking").textContent = "listening";
        at("hearing").textContent = trace.caller() ? "speaking" : "quiet";
      },
    });
  };
  const beginSpeech = (name) => {
    const lack = speechLacks();
    if (sound) { sound.close(); sound = null; }
    if (!aloud) return;
    if (lack) { aloud = false; release(); problem(lack); show("notice", false); return; }
    at("notice").textContent = name === "builtin/browser" ? NOTICE.browser : "The voice " + name + " cannot be used here. " + NOTICE.browser;
    ear.start();
  };
  const begin = (message) => {
    live = true;
    startedAt = performance.now();
    endsAt = startedAt + message.max_duration_seconds * 1000;
    ticking = setInterval(tick, 1000);
    tick();
    state("live", "Connected");
    status("");
    at("call").textContent = message.call.id;
    // The dashboard shows the page in a frame, and a link to the call beside it.
    if (parent !== self) parent.postMessage({ call_id: message.call.id }, location.origin);
    named(message.assistant_name);
    show("callid", true);
    mouth.language(message.language);
    ear.language = message.language;
    for (const id of ["left", "say", "end"]) show(id, true);
    show("type", false);
    if (message.audio) beginVoice(message.audio.rate); else beginSpeech(message.call.voice);
    show("talk", !aloud && !speechLacks());
    at("talk").disabled = false;
    at("speaking").textContent = "listening";
    at("hearing").textContent = aloud ? "quiet" : "typing";
    // The button that was pressed is gone.
    at(aloud ? "end" : "text").focus();
    trace.run();
  };
  const over = (kind, word, text) => {
    live = false;
    clearInterval(ticking);
    ear.stop();
    if (voice) { voice.clear(); voice.end(); }
    interim("");
    thinking(false);
    state(kind, word);
    status(text);
    // Where the eye is: below what was said last.
    if (at("lines").childElementCount) at("thinking").after(at("told"));
    show("again", restartable);
    for (const id of ["say", "end", "talk", "type", "left"]) show(id, false);
    at("hearing").textContent = "not connected";
    if (!mouth.speaking()) at("speaking").textContent = "not connected";
    release();
    if (!mouth.speaking()) trace.stop();
    at(restartable ? "again" : "state").focus();
  };
  const received = {
    call_started: begin,
    assistant_text: (message) => {
      thinking(false);
      const row = line("assistant", "Assistant", message.text);
      rows.set(message.index, row);
      if (voice) { answer = row; return; }
      if (!aloud) { latency(row); return; }
      mouth.say(message.index, message.text);
      // The person is talking over it already.
      if (heardWords) mouth.cut();
    },
    user_words: (message) => { interim(message.text); },
    user_text: (message) => { line("user", "You", message.text); thinking(true); },
    line_cut: (message) => { const row = rows.get(message.index); if (row) cutRow(row, message.heard); },
    turn: (message) => {
      saidAt = 0;
      const row = [...rows.values()].pop();
      if (row) row.note("answered after " + (message.latency_ms / 1000).toFixed(1) + " s");
    },
    mark: (message) => { if (voice) voice.mark(message.mark); },
    clear: () => { if (voice) voice.clear(); },
    tool_call: (message) => line("tool", "Tool call", message.name + " " + JSON.stringify(message.arguments)),
    tool_result: (message) => line("tool", message.is_error ? "Tool failed" : "Tool result", message.name + ": " + message.text),
    error: (message) => { thinking(false); line("error", "Error", message.message); },
    call_ended: (message) => {
      if (message.ended_reason === "user_hung_up") mouth.cut();
      over("ready", "Ended", (ENDING[message.ended_reason] || "The conversation is over (" + message.ended_reason + ").") + " It took " + clock(message.duration_ms) + ".");
    },
  };
  // What is wrong with the link. A browser does not tell why a socket was refused; the same address without the upgrade does.
  const flaw = async () => {
    try {
      const asked = new URL(address);
      asked.searchParams.set("check", "1");
      const reply = await fetch(asked, { cache: "no-store", credentials: "omit" });
      if (reply.ok) {
        const opens = await reply.json();
        named(opens.assistant_name);
        restartable = opens.restartable;
        if (restartable && !socket) status("This link opens conversations until it expires. They can incur usage on the account that made it.");
        return "";
      }
      const { error } = await reply.json();
      // A page that was reloaded: the link may still open further conversations.
      restartable = Boolean(error.details && error.details.restartable) || error.code === "too_many_starts";
      if (error.code === "too_many_starts") return error.message;
      return restartable ? LINK.over : LINK[error.code] || error.message;
    } catch { return "The service cannot be reached. Check the connection, then reload this page."; }
  };
  const refused = (text) => {
    if (text === LINK.over) over("ready", "Ended", text);
    else over("bad", "Refused", text || "The service did not open the conversation. Reload this page.");
    show("notice", false);
  };
  const connect = () => {
    state("wait", "Connecting");
    for (const id of ["talk", "type"]) at(id).disabled = true;
    if (sound) address.searchParams.set("audio", "speech");
    const url = new URL(address);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    let opened = false;
    socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => { opened = true; });
    socket.addEventListener("message", (event) => {
      if (typeof event.data !== "string") { if (voice) voice.play(event.data); return; }
      const message = JSON.parse(event.data);
      if (received[message.type]) received[message.type](message);
    });
    socket.addEventListener("close", (event) => {
      if (!opened) flaw().then(refused);
      else if (live) over("bad", "Disconnected", (CLOSED[event.code] || "The connection was closed.") + " (code " + event.code + ")");
    });
  };

  // The microphone comes before the socket: a link whose microphone was denied is not used up.
  let microphone = null;
  const talk = async () => {
    for (const part of Object.keys(problems)) problem("", part);
    at("talk").disabled = true;
    const opening = socket || audioLacks() ? null : newSound(script);
    try {
      if (!navigator.mediaDevices) throw new DOMException("", "SecurityError");
      microphone = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true } });
    } catch (error) {
      const kind = { NotFoundError: "missing", SecurityError: "insecure" }[error.name] || "denied";
      problem(MICROPHONE[kind]);
      at("talk").disabled = false;
      const unused = await opening;
      if (unused) unused.close();
      return;
    }
    aloud = true;
    for (const track of microphone.getTracks()) track.addEventListener("ended", () => { if (live) problem(MICROPHONE.missing); });
    if (!socket) {
      // Without it the browser's own voice remains.
      sound = await opening;
      trace.hear(microphone, sound || undefined);
      connect();
      return;
    }
    trace.hear(microphone);
    show("talk", false);
    at("hearing").textContent = "quiet";
    ear.start();
  };
  at("talk").addEventListener("click", talk);
  at("copy").addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(at("call").textContent); at("copy").textContent = "Copied"; }
    catch { getSelection().selectAllChildren(at("call")); }
  });
  at("type").addEventListener("click", connect);
  at("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("text").value;
    if (!text.trim()) return;
    mouth.cut();
    saidAt = performance.now();
    answer = null;
    said(text);
    at("text").value = "";
    // Whoever pressed Send goes on typing.
    at("text").focus();
  });
  at("again").addEventListener("click", async () => {
    at("again").disabled = true;
    try {
      const reply = await fetch(restart, { method: "POST", cache: "no-store", credentials: "omit" });
      const answer = await reply.json();
      if (reply.ok) {
        const next = new URL(location.href);
        next.searchParams.set("token", answer.token);
        location.replace(next);
        return;
      }
      status(LINK[answer.error.code] || answer.error.message);
      // It works again in a moment.
      if (answer.error.code === "too_many_starts") at("again").disabled = false;
      else show("again", false);
    } catch {
      status("The service cannot be reached. Check the connection, then try again.");
      at("again").disabled = false;
    }
  });
  at("end").addEventListener("click", () => { mouth.cut(); send({ type: "hang_up" }); });
  addEventListener("pagehide", () => { mouth.cut(); if (socket) socket.close(); });

  // A link that opens nothing says so before somebody presses Talk.
  flaw().then((text) => { if (text && !socket) refused(text); });
  const lack = audioLacks() && speechLacks();
  if (lack) {
    problem(lack);
    for (const id of ["talk", "notice"]) show(id, false);
    at("type").textContent = "Start";
    at("type").classList.add("primary");
  }
})();
