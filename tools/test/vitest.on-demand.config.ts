import { mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** What takes minutes, and runs alone and only when asked for, by the name of its project: `npm run soak`, `npm run matrix`, `npm run rehearse`. */
const onDemand = mergeConfig(base, {
  test: { testTimeout: 3_600_000, hookTimeout: 3_600_000, fileParallelism: false },
});
onDemand.test.projects = [
  ["soak", "packages/*/{src,testing}/**/*.soak.ts", "e2e/**/*.soak.ts"],
  ["matrix", "e2e/**/*.matrix.ts"],
  ["rehearsal", "e2e/**/*.rehearsal.ts"],
].map(([name, ...include]) => ({ extends: true, test: { name, include } }));

export default onDemand;
