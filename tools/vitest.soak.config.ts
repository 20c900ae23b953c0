import { mergeConfig } from "vitest/config";
import base from "./vitest.config";

// Soak tests repeat one thing for minutes: they run alone, and only when asked for.
const soak = mergeConfig(base, { test: { testTimeout: 3_600_000, fileParallelism: false } });
delete soak.test.projects;
soak.test.include = ["packages/*/src/**/*.soak.ts", "e2e/**/*.soak.ts"];

export default soak;
