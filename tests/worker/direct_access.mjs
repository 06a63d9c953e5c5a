// The test entry for workerd, in place of build/index.js: the built Worker, with direct access to its storage. The product
// contains none of this. tests/src/direct_access.rs is the client.
//
//   POST   /__sql            [[sql, params], …] as one D1 batch, with ?database= in another one than DB; {"results": …} or {"error": text}
//   PUT    /__blobs/KEY      stores the body in the bucket
//   GET    /__blobs/KEY      with ?first=0&bytes=10 those bytes; without, {"size": …}
//   DELETE /__blobs/KEY
import Sidetone from "./build/index.js";

async function sql(request, db) {
  const batch = (await request.json()).map(([text, params]) => db.prepare(text).bind(...params));
  try {
    const answers = await db.batch(batch);
    return Response.json({ results: answers.map((answer) => answer.results) });
  } catch (error) {
    return Response.json({ error: error.message });
  }
}

async function blob(request, bucket, key, query) {
  if (request.method === "PUT") await bucket.put(key, await request.arrayBuffer());
  if (request.method === "DELETE") await bucket.delete(key);
  if (request.method !== "GET") return new Response(null, { status: 204 });
  const nothing = new Response(null, { status: 404 });
  if (!query.has("first")) {
    const head = await bucket.head(key);
    return head ? Response.json({ size: head.size }) : nothing;
  }
  const range = { offset: Number(query.get("first")), length: Number(query.get("bytes")) };
  const object = await bucket.get(key, { range });
  return object ? new Response(await object.arrayBuffer()) : nothing;
}

const BLOBS = "/__blobs/";

export default {
  fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/__sql") return sql(request, env[searchParams.get("database") ?? "DB"]);
    if (pathname.startsWith(BLOBS)) return blob(request, env.RECORDINGS, pathname.slice(BLOBS.length), searchParams);
    return new Sidetone(context, env).fetch(request);
  },
  queue(batch, env, context) {
    return new Sidetone(context, env).queue(batch);
  },
  scheduled(event, env, context) {
    return new Sidetone(context, env).scheduled(event);
  },
};

export { LiveCall } from "./build/index.js";
