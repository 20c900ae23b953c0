/** Event files: their bytes, and what TensorBoard's own reader finds in them. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { init } from "@opt/core";
import { expectCode, torchPython } from "@opt/testkit";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { begin, optionsOf } from "../../testing/runs";
import { tensorBoard } from "../callbacks/tensor-board";
import { fit } from "../fit";
import { maskedCrc32c } from "./protobuf";
import { SummaryWriter } from "./summary-writer";

beforeEach(() => init("js"));
afterEach(() => void vi.restoreAllMocks());

const START = 1_700_000_000_000;

function write(writer: SummaryWriter) {
  writer.scalar("loss", 0.25, 300);
  writer.scalars({ "ä/accuracy": 0.5, lr: 1e-3 }, 200);
  writer.histogram("weights", [-1, 0, 0.5, 1, Number.NaN], 2);
  writer.text("notes", "# häuser", 1);
  return writer.close();
}

it("names the file of a full disk", async () => {
  const full = () => Promise.reject(Object.assign(new Error("no space left"), { code: "ENOSPC" }));
  const file = { write: full, finish: async () => {}, close: async () => {} };
  const fileSystem = { ...memoryFileSystem(), open: async () => file as never };
  const closed = write(new SummaryWriter("runs/a", { fileSystem }));
  await expectCode("IO", () => closed);
  await expect(closed).rejects.toThrow(/^\[runs\/a\/events.*\] writing failed: no space left\./);
});

it("has the checksum of RFC 3720, masked", () => {
  const unmasked = (masked: number) => {
    const rotated = (masked - 0xa282ead8) >>> 0;
    return ((rotated << 15) | (rotated >>> 17)) >>> 0;
  };
  expect(unmasked(maskedCrc32c(new Uint8Array(32))).toString(16)).toBe("8a9136aa");
  expect(unmasked(maskedCrc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toString(16)).toBe("46dd794e");
});

it("writes these bytes, which TensorBoard has read", async () => {
  vi.spyOn(Date, "now").mockReturnValue(START);
  const fileSystem = memoryFileSystem();
  await write(new SummaryWriter("runs/a", { fileSystem }));
  const name = (await fileSystem.list("runs/a"))[0]!.name;
  expect(name).toMatch(/^events\.out\.tfevents\.1700000000\.opt\.\d+$/);
  const bytes = new Uint8Array(await (await fileSystem.blob(`runs/a/${name}`)).arrayBuffer());
  expect(Buffer.from(bytes).toString("base64")).toMatchSnapshot();
});

const READER = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
events.Reload()
print(json.dumps({
  "scalars": {tag: [[e.step, e.value, e.wall_time] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]},
  "histograms": {tag: [[e.step, *(getattr(e.histogram_value, n) for n in ("min", "max", "num", "sum", "sum_squares"))] for e in events.Histograms(tag)] for tag in events.Tags()["histograms"]},
  "texts": {tag: [e.tensor_proto.string_val[0].decode() for e in events.Tensors(tag)] for tag in events.Tags()["tensors"]},
}))
`;

it("TensorBoard reads names, steps, values and times", async ({ skip }) => {
  if (torchPython === undefined) skip("OPT_TORCH_PYTHON is not set");
  const folder = await mkdtemp(join(tmpdir(), "opt-board-"));
  await write(new SummaryWriter(join(folder, "writer")));
  const run = begin("mlp", (model) => new AdamW(model.namedParameters()), {});
  const callbacks = [tensorBoard(join(folder, "run"), { histograms: true })];
  const { losses, epochs } = await fit(run.model, { ...optionsOf(run, {}), callbacks });
  const read = (name: string) => {
    const { stdout, stderr, status } = spawnSync(torchPython!, ["-c", READER, join(folder, name)], {
      encoding: "utf8",
    });
    if (status !== 0 && /No module named 'tensorboard'/.test(stderr)) skip("this Python has no tensorboard");
    return JSON.parse(stdout);
  };
  const own = read("writer");
  expect(own.scalars.loss.map((row: number[]) => row.slice(0, 2))).toEqual([[300, 0.25]]);
  expect(own.scalars["ä/accuracy"][0].slice(0, 2)).toEqual([200, 0.5]);
  expect(own.scalars.lr[0].slice(0, 2)).toEqual([200, Math.fround(1e-3)]);
  expect(Math.abs(own.scalars.loss[0][2] - Date.now() / 1000)).toBeLessThan(600);
  expect(own.histograms.weights).toEqual([[2, -1, 1, 4, 0.5, 2.25]]);
  expect(own.texts).toEqual({ "notes/text_summary": ["# häuser"] });
  const { scalars, histograms, texts } = read("run");
  expect(scalars["train/loss"].map(([step, value]: number[]) => [step, value])).toEqual(
    losses.map((loss, i) => [i + 1, loss]),
  );
  expect(scalars["epoch/loss"].map(([step]: number[]) => step)).toEqual([3, 6]);
  expect(scalars["epoch/loss"][1][1]).toBeCloseTo(epochs[1]!.loss, 6);
  expect(Object.keys(histograms)).toEqual(run.model.namedParameters().map(([name]) => `weights/${name}`));
  expect(texts["model/text_summary"][0]).toContain("Linear");
  expect(await readdir(join(folder, "run"))).toHaveLength(1);
  await rm(folder, { recursive: true });
});

it.each<[string, () => unknown]>([
  ["a folder", () => tensorBoard("")],
  ["every", () => tensorBoard("a", { every: 0.5 })],
  ["a writer's folder", () => new SummaryWriter(undefined as never)],
])("rejects wrong arguments: %s", (_, make) => expectCode("BAD_ARGUMENT", make));
