/** A processor without the newer instruction sets computes the same words: they are hidden, and the best of the others is chosen. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { bundled } from "@opt/testkit/bundled";
import { expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";

interface Computed {
  readonly sets: (string | null)[];
  readonly words: Record<string, number>;
}

const isX64 = process.arch === "x64";
const missing = missingDevice ?? (isX64 ? undefined : " (skipped: this processor has one instruction set)");

it.skipIf(missing)(`hidden instruction sets change no word${missing ?? ""}`, async ({ signal }) => {
  const [program] = await bundled(fileURLToPath(new URL("../testing/words.ts", import.meta.url)));
  const computed = async (hidden: string): Promise<Computed> => {
    const { OPT_CPU_ISA: _, OPT_CPU_HIDE: __, ...others } = process.env;
    const env = hidden === "" ? others : { ...others, OPT_CPU_HIDE: hidden };
    return JSON.parse((await promisify(execFile)(process.execPath, [program], { env, signal })).stdout);
  };
  const whole = await computed("");
  expect(Object.keys(whole.words).length).toBeGreaterThan(10);
  for (const hidden of ["avx512", "avx512,avx2"]) {
    const { sets, words } = await computed(hidden);
    for (const name of hidden.split(",")) expect(sets).not.toContain(name);
    expect(sets).toContain("sse2");
    expect(words).toEqual(whole.words);
  }
});
