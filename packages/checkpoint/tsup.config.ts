import { defineConfig } from "tsup";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    planner: "src/planner.ts",
    s3: "src/s3.ts",
    cli: "src/command/cli.ts",
    "platform/node": "src/platform/node.ts",
    "platform/browser": "src/platform/browser.ts",
  },
  // Chosen where the package is used, by the conditions in package.json.
  external: ["#platform"],
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
