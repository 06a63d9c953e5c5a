"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const status = (text) => { at("status").textContent = text; };
  const line = (kind, text) => {
    const item = document.createElement("li");
    item.className = kind;
    item.textContent = text;
    at("lines").append(item);
    item.scrollIntoView({ block: "nearest" });
  };
  const talking = (yes) => { at("say").hidden = !yes; at("end").hidden = !yes; };
  // Beside the page, wherever the service is; the token stays in the query.
  const address = new URL("voice-test/socket" + location.search, new URL(".", location.href));
  let socket;
  const show = {
    call_started: (m) => { status("Connected for at most " + m.max_duration_seconds + " s. Call " + m.call.id); talking(true); at("text").focus(); },
    assistant_text: (m) => line("assistant", m.text),
    tool_call: (m) => line("tool", m.name + " " + JSON.stringify(m.arguments)),
    tool_result: (m) => line("tool", m.name + (m.is_error ? " failed: " : " → ") + m.text),
    error: (m) => line("error", m.message),
    call_ended: (m) => status("The conversation is over (" + m.ended_reason + "). Call " + m.call_id),
  };
  const send = (message) => { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };
  // A browser does not tell why a socket was refused; the same address without the upgrade does.
  const why = async () => {
    try {
      const answer = await fetch(address, { cache: "no-store", credentials: "omit" });
      status((await answer.json()).error.message);
    } catch { status("The service cannot be reached."); }
  };
  at("start").addEventListener("click", () => {
    at("start").hidden = true;
    status("Connecting …");
    const url = new URL(address);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    let opened = false;
    let over = false;
    socket = new WebSocket(url);
    socket.addEventListener("open", () => { opened = true; });
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      over = over || message.type === "call_ended";
      const shown = show[message.type];
      if (shown) shown(message);
    });
    socket.addEventListener("close", (event) => {
      talking(false);
      if (!opened) why();
      else if (!over) status("The connection was closed (" + event.code + " " + event.reason + ").");
    });
  });
  at("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("text").value;
    if (!text.trim()) return;
    line("user", text);
    send({ type: "user_text", text });
    at("text").value = "";
  });
  at("end").addEventListener("click", () => send({ type: "hang_up" }));
})();
