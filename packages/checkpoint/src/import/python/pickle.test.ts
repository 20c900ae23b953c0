import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { Call, Name, pickleOf, Tuple } from "../../testing/pickles";
import { memorySource } from "../bytes/byte-source";
import { PickleCall, PickleRange, type PickleTuple, readPickleOf } from "./pickle";

const LIMITS = { globals: new Set(["collections.OrderedDict"]) };
const read = (bytes: Uint8Array): Promise<unknown> => readPickleOf(memorySource("test.pkl", bytes), LIMITS);
const program = (...parts: (number | string)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Uint8Array.of(part))));

describe("readPickle", () => {
  it.each([2, 4] as const)("builds plain values (protocol %s)", async (protocol) => {
    const value = new Map<unknown, unknown>([
      ["a", [1, -2, 0.5, true, null]],
      [3, "é"],
    ]);
    expect(await read(pickleOf(value, protocol))).toEqual(value);
  });

  it("notes calls and never makes them", async () => {
    const call = (await read(pickleOf(new Call(new Name("collections", "OrderedDict"), [1], { a: 2 })))) as PickleCall;
    expect(call).toBeInstanceOf(PickleCall);
    expect([call.callable, call.args, call.state]).toEqual(["collections.OrderedDict", [1], new Map([["a", 2]])]);
  });

  it.each([
    ["os.system by GLOBAL", pickleOf(new Call(new Name("os", "system"), ["touch /tmp/owned"]), 2), "os.system"],
    ["eval by STACK_GLOBAL", pickleOf(new Call(new Name("builtins", "eval"), ["1"]), 4), "builtins.eval"],
    ["a dotted name", pickleOf(new Name("collections", "OrderedDict.fromkeys"), 4), "collections.OrderedDict.fromkeys"],
    ["a prototype's name", pickleOf(new Name("constructor", "constructor"), 4), "constructor.constructor"],
  ])("refuses %s by name", async (_, bytes, name) => {
    expect(await expectCode("REFUSED", read(bytes))).toContain(name);
  });

  it("leaves long bytes where they are", async () => {
    const range = (await read(pickleOf(new Tuple(new Uint8Array(5000), 1)))) as PickleTuple;
    expect(range.items).toEqual([new PickleRange("bytes", 2 + 1 + 5, 5000), 1]);
  });

  it.each([
    ["nothing", program()],
    ["no STOP", program(0x80, 2, 0x4e)],
    ["an empty stack", program(0x80, 2, 0x2e)],
    ["an unknown opcode", program(0x80, 2, 0xff)],
    ["protocol 6", program(0x80, 6, 0x4e, 0x2e)],
    ["a memo that was never stored", program(0x80, 2, 0x68, 7, 0x2e)],
    ["a list closed without a mark", program(0x80, 2, 0x5d, 0x65, 0x2e)],
    ["a mark taken as a value", program(0x80, 2, 0x28, 0x2e)],
    ["a text longer than the file", program(0x80, 2, 0x58, "\xff\xff\xff\x7f", 0x2e)],
    ["bytes of 2^62", program(0x80, 4, 0x8e, "\0\0\0\0\0\0\0\x40", 0x2e)],
    ["an integer of 2 GiB", program(0x80, 2, 0x8b, "\xff\xff\xff\x7f", 0x2e)],
    ["an instance opcode", program("(ios\nsystem\n.")],
    ["a call of a number", program(0x80, 2, 0x4b, 1, 0x29, 0x52, 0x2e)],
    ["a persistent id in a file without storages", program(0x80, 2, 0x4e, 0x51, 0x2e)],
    ["a global's name that does not end", program(0x80, 2, 0x63, "a".repeat(5000))],
  ])("refuses %s", async (_, bytes) => {
    await expectCode("CORRUPT", read(bytes));
  });

  it.each([
    ["dicts", 0x7d],
    ["lists", 0x5d],
  ])("refuses a file of nothing but %s before they fill the memory", async (_, opcode) => {
    await expectCode("CORRUPT", read(new Uint8Array(2 << 20).fill(opcode)));
  });

  it("reads integers of any sign and length", async () => {
    const long = (...bytes: number[]): Promise<unknown> => read(program(0x80, 2, 0x8a, bytes.length, ...bytes, 0x2e));
    expect(await long()).toBe(0);
    expect(await long(0xff)).toBe(-1);
    expect(await long(0, 0x80, 0)).toBe(32768);
    expect(await long(0, 0, 0, 0, 0, 0, 0, 0, 0x40)).toBe(2n ** 70n);
  });
});
