import { defineConfig } from "tsup";

export default defineConfig({
  entry: { index: "src/index.ts", planner: "src/planner.ts", cli: "src/command/cli.ts" },
  format: "esm",
  target: "es2022",
  dts: { compilerOptions: { noCheck: true } }, // checked by `npm run typecheck`
  sourcemap: true,
  clean: true,
});
