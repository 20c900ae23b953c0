/** Serves a folder of pages on this machine, compressed as hosts do. */
import { preview } from "vite";

/** Pages with these share memory between threads, which the device wasm uses. `docs/public/_headers` has them for hosts. */
const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/**
 * @param {string} folder
 * @param {number} [port] 0: a free one
 * @param {Record<string, string>} [headers] of every answer
 * @returns {Promise<{ address: string, close: () => Promise<void> }>}
 */
export async function serve(folder, port = 0, headers = {}) {
  const server = await preview({
    configFile: false,
    root: folder,
    appType: "mpa",
    logLevel: "error",
    build: { outDir: folder },
    preview: { host: "localhost", port, headers: { ...ISOLATED, ...headers } },
  });
  return { address: server.resolvedUrls?.local[0] ?? "", close: () => server.close() };
}
