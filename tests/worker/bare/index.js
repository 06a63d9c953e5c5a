// A minimal Worker with the same response: one SELECT by primary key, its row as JSON. No key, no checks.
export default {
  async fetch(request, env) {
    const id = new URL(request.url).pathname.slice("/assistants/".length);
    const row = await env.DB.prepare("SELECT * FROM assistants WHERE id = ?1").bind(id).first();
    return row === null ? new Response(null, { status: 404 }) : Response.json(row);
  },
};
