/** Integers of 64 bits, which PyTorch counts in, as Tensors: i32 where it holds the same numbers. */
import { init, tensor, zeros } from "@opt/core";
import { beforeEach, describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { convertCheckpoint } from "../convert/convert";
import { openForeign } from "../formats/registry";
import { loadCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";
import type { LoadOptions } from "./load";

const COUNTER = "bn.num_batches_tracked";
let fileSystem: MemoryFileSystem;

const save = (...counts: bigint[]) => {
  const counter = { dtype: "I64", shape: counts.length === 1 ? [] : [counts.length], data: BigInt64Array.from(counts) };
  return saveCheckpoint("/r", { step: 1, tensors: { w: tensor([0.5]), [COUNTER]: counter } }, { fileSystem });
};
const load = (options: LoadOptions = {}) => loadCheckpoint("/r", { fileSystem, ...options });

beforeEach(async () => {
  await init("js");
  fileSystem = new MemoryFileSystem();
});

describe("a counter of I64", () => {
  it.each<[string, LoadOptions, string, string]>([
    ["nothing said", {}, "f32", "i32"],
    ["f32 for all", { dtype: "f32" }, "f32", "i32"],
    ["bf16 for all", { dtype: "bf16" }, "bf16", "i32"],
    ["its own name", { dtype: { [COUNTER]: "f64" } }, "f32", "f64"],
    ["a pattern", { dtype: { "*num_batches_tracked": "i32" } }, "f32", "i32"],
  ])("loads with %s", async (_, options, weight, counter) => {
    await save(7n);
    const { tensors, unverified } = await load(options);
    const one = tensors[COUNTER]!;
    expect([tensors.w!.dtype, one.dtype, one.shape, one.dataSync()[0], unverified]).toEqual([
      weight,
      counter,
      [],
      7,
      [],
    ]);
  });

  it("fills a module's own", async () => {
    await save(7n);
    const into = { [COUNTER]: zeros([], { dtype: "i32" }) };
    await load({ into });
    expect([...into[COUNTER]!.dataSync()]).toEqual([7]);
  });

  it("stays as it is in plain data", async () => {
    await save(2n ** 40n);
    const { tensors } = await loadCheckpoint("/r", { fileSystem, as: "plain" });
    expect([tensors[COUNTER]!.dtype, new BigInt64Array(tensors[COUNTER]!.data.slice().buffer)[0]]).toEqual([
      "I64",
      2n ** 40n,
    ]);
  });

  it("takes the least and the largest numbers of i32", async () => {
    await save(-(2n ** 31n), 2n ** 31n - 1n, 0n);
    expect([...(await load()).tensors[COUNTER]!.dataSync()]).toEqual([-(2 ** 31), 2 ** 31 - 1, 0]);
  });

  it.each([2n ** 31n, -(2n ** 31n) - 1n, 2n ** 53n + 1n])(
    "of %d is rejected by name, into what is there as well",
    async (count) => {
      await save(1n, count);
      const into = { [COUNTER]: tensor([5, 5], { dtype: "i32" }) };
      for (const options of [{}, { dtype: "f32" }, { into }]) {
        await expect(load(options)).rejects.toMatchObject({ code: "BAD_DTYPE", where: `tensor "${COUNTER}"` });
      }
      expect([...into[COUNTER]!.dataSync()]).toEqual([5, 5]);
    },
  );
});

it.each([
  ["I64", BigInt64Array.of(2n ** 40n)],
  ["U64", BigUint64Array.of(3n)],
  ["F8_E4M3", Uint8Array.of(0x38)],
])("what is advised for %s works", async (dtype, data) => {
  await saveCheckpoint("/r", { step: 1, tensors: { x: { dtype, shape: [1], data } } }, { fileSystem });
  const { message } = await load().then(
    () => new Error(),
    (error: Error) => error,
  );
  const advised = /\{ dtype: \{ "x": "(\w+)" \} \}/.exec(message)![1]!;
  const { tensors } = await load({ dtype: { x: advised } });
  expect(tensors.x!.dataSync()[0]).toBe({ I64: 2 ** 40, U64: 3, F8_E4M3: 1 }[dtype]);
});

it("the conversion that `into` advises works", async () => {
  await saveCheckpoint("/r", { step: 1, tensors: { x: tensor(3) } }, { fileSystem });
  const into = { x: zeros([], { dtype: "i32" }) };
  const { message } = await load({ into }).then(
    () => new Error(),
    (error: Error) => error,
  );
  expect(message).toContain('{ dtype: { "x": "i32" } }');
  await load({ into, dtype: { x: "i32" } });
  expect(into.x.dataSync()[0]).toBe(3);
});

it.each(["pt", "dcp"] as const)("PyTorch's counters are I64 again in %s", async (to) => {
  const tensors = { w: tensor([0.5]), [COUNTER]: tensor(7, { dtype: "i32" }), other: tensor(3, { dtype: "i32" }) };
  await saveCheckpoint("/r", { step: 1, tensors }, { fileSystem });
  await convertCheckpoint("/r", "/out", { to, fileSystem });
  const source = await openForeign("/out", fileSystem);
  const of = (name: string) => [...source.tensors.values()].find((tensor) => tensor.name.endsWith(name))!.dtype;
  expect([of(COUNTER), of("other")]).toEqual(["I64", "I32"]);
  await source.close();
});
