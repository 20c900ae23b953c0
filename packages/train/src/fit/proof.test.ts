/** `opt-run --prove-resume` on programs of `fit`. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { init } from "@opt/core";
import { bundled, optRun } from "@opt/testkit/bundled";
import { afterEach, expect, it, vi } from "vitest";
import { begin, optionsOf } from "../../testing/runs";
import { checkpoints } from "../callbacks/checkpoints";
import { fit } from "../fit";

const [cli, program] = await bundled(optRun, fileURLToPath(new URL("../../testing/proven-run.ts", import.meta.url)));
const prove = (breaks: string, ranks: number, device: string, kind: string) =>
  spawnSync(process.execPath, [cli, "--prove-resume", breaks, "-n", `${ranks}`, program, device, kind], {
    encoding: "utf8",
  });

afterEach(() => vi.unstubAllEnvs());

it.each([
  ["7,12", 1, "wasm", "dropout,schedule,scaler,ema,accumulate,validation,clip"],
  ["5", 2, "js", "dropout,plateau,early,every"],
] as const)("proves a resume broken at %s, on %d ranks", (...given) => {
  const { status, stderr } = prove(given[0], given[1], given[2], given[3]);
  expect([status, stderr]).toEqual([
    0,
    expect.stringMatching(/proven: broken at .* and resumed, the run is the same to step \d\d/),
  ]);
});

it("finds what the checkpoint of fit lacks: a validation that draws its own order", () => {
  const { status, stderr } = prove("9", 1, "js", "validation,shuffled validation");
  expect([status, stderr]).toEqual([1, expect.stringMatching(/differs: .*(val_|generators)/)]);
});

it("rejects a run that saves elsewhere than a proof, before it reads or writes there", async () => {
  await init("js");
  vi.stubEnv("OPT_RUN_FOLDER", "/proofs/run");
  const begun = begin("mlp", (model) => new AdamW(model.namedParameters()), {});
  const options = { ...optionsOf(begun, {}), callbacks: [checkpoints("runs/a")] };
  expect(() => fit(begun.model, options)).toThrow(/must save in OPT_RUN_FOLDER, got "runs\/a"/);
});
