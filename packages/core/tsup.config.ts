import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/schedules/index.ts", "src/backend/index.ts"],
  format: "esm",
  target: "es2022",
  dts: { compilerOptions: { noCheck: true } }, // checked by `npm run typecheck`
  sourcemap: true,
  clean: true,
});
