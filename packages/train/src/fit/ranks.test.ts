/** Ranks that train by `fit`. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

interface Trained {
  words: string;
  epochs: { loss: number; accuracy: number }[];
}

type Results = Record<"whole" | "sharded" | "resumed", Trained> & { hand: string };

it("two ranks: the words of the loop by hand, metrics of both, and a divided optimizer that is resumed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "opt-ranks-"));
  const launcher = fileURLToPath(new URL("src/local/cli.ts", import.meta.resolve("@opt/parallel/package.json")));
  const program = fileURLToPath(new URL("../testing/ranks-run.ts", import.meta.url));
  const node = ["--conditions=@opt/source", "--import", import.meta.resolve("tsx")];
  const { stdout, stderr } = spawnSync(process.execPath, [...node, launcher, "-n", "2", program, folder], {
    encoding: "utf8",
    timeout: 120_000,
  });
  expect(stderr).toBe("");
  const [first, second] = JSON.parse(stdout) as [Results, Results];
  for (const { hand, whole, sharded, resumed } of [first, second]) {
    expect([whole.words, sharded.words, resumed.words]).toEqual([hand, hand, hand]);
    expect(hand).toBe(first.hand);
    expect([whole.epochs, sharded.epochs]).toEqual([first.whole.epochs, first.whole.epochs]);
    expect(resumed.epochs).toEqual(first.whole.epochs);
  }
  await rm(folder, { recursive: true });
});
