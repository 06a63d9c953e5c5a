// authproxy.mjs CMD...: runs CMD with SIDETONE_PROXY_URL set to a proxy in front of SIDETONE_URL that adds the
// API key to every request and changes nothing else. The conformance tool cannot send custom headers.
import { spawn } from 'node:child_process';
import http from 'node:http';

const { SIDETONE_URL, SIDETONE_KEY } = process.env;
const target = new URL(SIDETONE_URL);

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${SIDETONE_KEY}` };
  const onward = http.request(
    { host: target.hostname, port: target.port, method: request.method, path: request.url, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  onward.on('error', () => response.destroy());
  request.pipe(onward);
});

// Port 0 selects a free port.
proxy.listen(0, '127.0.0.1', () => {
  const [command, ...args] = process.argv.slice(2);
  const env = { ...process.env, SIDETONE_PROXY_URL: `http://127.0.0.1:${proxy.address().port}` };
  spawn(command, args, { stdio: 'inherit', env }).on('exit', (code) => process.exit(code ?? 1));
});
