import { expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { memorySource } from "../bytes/source";
import { readPickleOf } from "./pickle";
import { PickleNumbers, type PickleState, type PickleTuple } from "./pickle-objects";

type Part = number | string;
const bytesOf = (...parts: readonly Part[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Uint8Array.of(part))));

const LIMITS = {
  globals: new Set(["a.B", "torch.Size"]),
  records: new Map([
    ["a.B", { built: (state: PickleState) => [state.get("x"), state.get("y")] }],
    ["torch.Size", { isNumbers: true }],
  ]),
};
/** Memo 0 and 1 are the classes, 2 is the record, 3 its state, 4 the name of its field. */
const HEAD = ["(ca\nB\n", 0x94, "ctorch\nSize\n", 0x94, "h", 0, ")", 0x81, 0x94, "}", 0x94, "(", 0x8c, 1, "x", 0x94];

/** What a tuple of a record with this value of `x`, and of more behind it, reads as. Only with as many bytes behind it is it read at once. */
function read(behind: number, value: readonly Part[], ...more: readonly Part[]): Promise<PickleTuple> {
  const bytes = bytesOf(...HEAD, ...value, "ub", ...more, "t", "(", "N".repeat(behind), 0x31, ".");
  return readPickleOf(memorySource("test.pkl", bytes), LIMITS) as Promise<PickleTuple>;
}

const SIZE_END = [0x94, 0x85, 0x94, "R", 0x94];
const SIZE = ["h", 1, "K", 2, "K", 3, 0x86, ...SIZE_END];

it.each<[string, Part[], unknown, Part[]?]>([
  ["a byte", ["K", 7], 7],
  ["two bytes", ["M", 0, 1], 256],
  ["four bytes", ["J", 0xfe, 0xff, 0xff, 0xff], -2],
  ["more than four bytes", [0x8a, 5, 0, 0, 0, 0x80, 1], 0x180000000],
  ["an integer past all numbers", [0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x40], 2n ** 70n],
  ["nothing", ["N"], null],
  ["what it does not know", [0x88], true],
  ["a text that is recalled", [0x8c, 2, "ab", 0x94], "ab", ["h", 5]],
  ["two fields", [0x8c, 1, "a", 0x94, 0x8c, 1, "y", 0x94, "K", 9], "a", ["h", 6]],
  ["sizes", SIZE, new PickleNumbers([2, 3]), ["h", 7]],
  ["sizes whose tuple is recalled", SIZE, new PickleNumbers([2, 3]), ["h", 5]],
  ["sizes without dimensions", ["h", 1, ")", 0x85, 0x94, "R", 0x94], new PickleNumbers([])],
  ["four sizes", ["h", 1, "(K", 1, "K", 2, "K", 3, "K", 4, "t", ...SIZE_END], new PickleNumbers([1, 2, 3, 4])],
  ["a negative size", ["h", 1, "J", 0xff, 0xff, 0xff, 0xff, 0x85, ...SIZE_END], expect.anything()],
  ["a record that is recalled", ["K", 7], 7, ["h", 2]],
  ["a state that is recalled", ["K", 7], 7, ["h", 3]],
])("records with %s read alike at once and by steps", async (_, value, x, more = []) => {
  const [atOnce, bySteps] = [await read(5000, value, ...more), await read(0, value, ...more)];
  expect(atOnce).toEqual(bySteps);
  expect((atOnce.items[2] as unknown[])[0]).toEqual(x);
});

it("keeps equal sizes once", async () => {
  const record = ["h", 0, ")", 0x81, 0x94, "}", 0x94, "(h", 4, ...SIZE, "ub"];
  const { items } = await read(5000, SIZE, ...record);
  const [[first], [second]] = items.slice(2) as [[PickleNumbers], [PickleNumbers]];
  expect(first).toBe(second);
});

it.each([
  ["a field without a value", ["K", 7, "K", 8]],
  ["a memo that nobody stored", ["h", 99]],
])("rejects %s", async (_, value) => {
  await expectCode("CORRUPT", read(5000, value));
});
