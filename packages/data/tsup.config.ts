import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts"],
  format: "esm",
  target: "es2022",
  dts: { compilerOptions: { noCheck: true } }, // checked by `npm run typecheck`
  sourcemap: true,
  // The sources lie beside it in the package: maps name them and do not repeat them.
  esbuildOptions: (options) => {
    options.sourcesContent = false;
  },
  clean: true,
});
