import { defineConfig } from "vite";
import { digitsFolder } from "./small-digits.mjs";

/** Pages with these headers share memory between threads, which the WASM device uses. */
const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

export default defineConfig({
  root: import.meta.dirname,
  publicDir: digitsFolder,
  resolve: { conditions: ["@opt/source", "module", "browser", "development|production"] },
  server: { headers },
  preview: { headers },
  build: { target: "es2022", chunkSizeWarningLimit: 1000 },
  worker: { format: "es" },
});
