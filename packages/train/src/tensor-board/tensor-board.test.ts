/** Event files: their bytes, and what TensorBoard's own reader finds in them. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { init } from "@opt/core";
import { expectCode, torchPython } from "@opt/testkit";
import fc from "fast-check";
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

type Field = readonly [number: number, value: number | Buffer];

/** A protocol buffer's fields. */
function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let [value, factor] = [0, 1];
    for (; bytes[at]! >= 128; factor *= 128) value += (bytes[at++]! - 128) * factor;
    return value + bytes[at++]! * factor;
  };
  while (at < bytes.length) {
    const key = varint();
    const width = { 0: 0, 1: 8, 2: 0, 5: 4 }[key % 8]!;
    const length = key % 8 === 2 ? varint() : width;
    const part = bytes.subarray(at, at + length);
    const value =
      key % 8 === 0 ? varint() : width === 8 ? part.readDoubleLE() : width === 4 ? part.readFloatLE() : part;
    fields.push([Math.floor(key / 8), value]);
    at += length;
  }
  return fields;
}
const fieldOf = (message: Field[], number: number) => message.find(([each]) => each === number)?.[1];
const inside = (message: Field[], ...path: number[]) =>
  path.reduce((fields, number) => fieldsOf(fieldOf(fields, number) as Buffer), message);

it("holds any scalars, texts and spreads of numbers, of any step", async () => {
  const number = fc.oneof(fc.double({ min: -1e6, max: 1e6 }), fc.constantFrom(Number.NaN, Infinity, 3, 5, 5.5));
  const drawn = fc.record({
    step: fc.oneof(fc.nat(300), fc.maxSafeNat()),
    tag: fc.string({ unit: fc.constantFrom("a", "ä", "/"), minLength: 1, maxLength: 200 }),
    values: fc.array(number, { maxLength: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ step, tag, values }) => {
      const fileSystem = memoryFileSystem();
      const writer = new SummaryWriter("a", { fileSystem });
      const scalars = Object.fromEntries(values.map((value, i) => [tag + i, value]));
      writer.scalars(scalars, step);
      writer.histogram(tag, values, step);
      writer.text(tag, tag, step);
      await writer.close();
      const blob = await fileSystem.blob(`a/${(await fileSystem.list("a"))[0]!.name}`);
      const file = Buffer.from(await blob.arrayBuffer());
      const events: Field[][] = [];
      for (let at = 0; at < file.length; at += 16 + Number(file.readBigUInt64LE(at)))
        events.push(fieldsOf(file.subarray(at + 12, at + 12 + Number(file.readBigUInt64LE(at)))));
      expect(events.slice(1).map((event) => fieldOf(event, 2))).toEqual([step, step, step]);
      const told = fieldsOf(fieldOf(events[1]!, 5) as Buffer).map(([, value]) => fieldsOf(value as Buffer));
      expect(told.map((value) => [String(fieldOf(value, 1)), fieldOf(value, 2)])).toEqual(
        Object.entries(scalars).map(([name, value]) => [name, Math.fround(value)]),
      );
      expect(String(fieldOf(inside(events[3]!, 5, 1, 8), 8))).toBe(tag);
      const histogram = inside(events[2]!, 5, 1, 5);
      const finite = values.filter(Number.isFinite);
      const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);
      const [least, most] = finite.length > 0 ? [Math.min(...finite), Math.max(...finite)] : [0, 0];
      expect([1, 2, 3, 4, 5].map((field) => fieldOf(histogram, field))).toEqual([
        ...[least, most, finite.length, sum(finite), sum(finite.map((x) => x * x))],
      ]);
      const doubles = (field: number) => {
        const part = fieldOf(histogram, field) as Buffer;
        return Array.from({ length: part.length / 8 }, (_, i) => part.readDoubleLE(8 * i));
      };
      const [limits, counts] = [doubles(6), doubles(7)];
      expect([limits.length, counts.length, sum(counts)]).toEqual([30, 30, finite.length]);
      const width = (most - least) / 30 || 1;
      for (const [i, limit] of limits.entries()) {
        expect(Math.abs(limit - (least + (i + 1) * width))).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(limit)));
        const below = sum(counts.slice(0, i + 1));
        expect(below).toBeGreaterThanOrEqual(finite.filter((x) => x < limit - 1e-9 * (1 + Math.abs(limit))).length);
        expect(below).toBeLessThanOrEqual(finite.filter((x) => x <= limit + 1e-9 * (1 + Math.abs(limit))).length);
      }
      expect(limits.at(-1)!).toBeGreaterThanOrEqual(most);
    }),
    { seed: 1, numRuns: 40 },
  );
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

it("closes a file whose end cannot be written", async () => {
  let closed = 0;
  const file = {
    write: async () => {},
    finish: async () => Promise.reject(new Error("full")),
    close: async () => void closed++,
  };
  const fileSystem = { ...memoryFileSystem(), open: async () => file } as never;
  await expectCode("IO", () => new SummaryWriter("a", { fileSystem }).close());
  expect(closed).toBe(1);
});
