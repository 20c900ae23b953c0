/** A program that runs in a page: bundled as users' bundlers do it, and served on loopback. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";

export interface ServedProgram {
  readonly url: string;
  close(): void;
}

export interface ServedOptions {
  /** Folders that are shown under a path of their own: `{ wasm: "/some/folder" }`. */
  readonly folders?: Readonly<Record<string, string>>;
  /** Memory is shared between the page's threads. */
  readonly isolated?: boolean;
}

const ISOLATION = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
const PAGE = "<!doctype html><title>test</title><script type=module src=/page.js></script>";
const TYPES: Readonly<Record<string, string>> = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };

export async function serveProgram(entry: string, options: ServedOptions = {}): Promise<ServedProgram> {
  const { folders = {}, isolated = false } = options;
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    conditions: ["@opt/source"],
    target: "es2022",
    logLevel: "error",
  });
  const known: Readonly<Record<string, string>> = { "/index.html": PAGE, "/page.js": outputFiles[0]!.text };
  const server = createServer(async ({ url = "/" }, response) => {
    const path = url === "/" ? "/index.html" : url;
    const [, folder, file] = /^\/([^/]+)\/([\w.-]+)$/.exec(path) ?? [];
    const shown = folder === undefined ? undefined : folders[folder];
    const content =
      known[path] ?? (shown && file ? await readFile(join(shown, file)).catch(() => undefined) : undefined);
    const headers = { "Content-Type": TYPES[path.split(".").at(-1)!] ?? "text/plain", ...(isolated && ISOLATION) };
    response.writeHead(content === undefined ? 404 : 200, headers).end(content);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://localhost:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}
