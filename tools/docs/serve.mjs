/** Serves a folder of pages on this machine, compressed as hosts do. */
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { createGzip } from "node:zlib";

/** @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".gif": "image/gif",
};

/** @param {string} path */
const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/**
 * @param {string} folder
 * @param {number} [port] 0: a free one
 * @param {Record<string, string>} [headers] of every answer
 * @returns {Promise<{ address: string, close: () => void }>}
 */
export function serve(folder, port = 0, headers = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const path = normalize(decodeURIComponent(pathname));
    const file = [path, `${path}.html`, `${path}/index.html`].map((each) => join(folder, each)).find(isFile);
    const found = file ?? join(folder, "404.html");
    const type = TYPES[extname(found)] ?? "application/octet-stream";
    const isText = /text|json|svg/.test(type);
    const encoding = isText && { "Content-Encoding": "gzip" };
    response.writeHead(file ? 200 : 404, { "Content-Type": type, ...encoding, ...headers });
    const bytes = createReadStream(found);
    (isText ? bytes.pipe(createGzip()) : bytes).pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject).listen(port, "127.0.0.1", () => {
      const bound = /** @type {import("node:net").AddressInfo} */ (server.address());
      resolve({ address: `http://localhost:${bound.port}/`, close: () => server.close() });
    });
  });
}
