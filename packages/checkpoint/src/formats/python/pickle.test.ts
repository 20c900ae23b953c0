import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { Call, Name, pickleOf, Tuple } from "../../../testing/files/pickles";
import { memorySource } from "../bytes/source";
import { readPickleOf } from "./pickle";
import { PickleCall, PickleRange, type PickleState, PickleTuple } from "./pickle-objects";

const LIMITS = { globals: new Set(["collections.OrderedDict"]) };
const read = (bytes: Uint8Array): Promise<unknown> => readPickleOf(memorySource("test.pkl", bytes), LIMITS);
const program = (...parts: (number | string)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Uint8Array.of(part))));

/** As Latin-1 has them: 0x80 to 0x9f are not those of Windows-1252. */
const HIGH = String.fromCharCode(...Array.from({ length: 128 }, (_, i) => 128 + i));

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
  ])("rejects %s by name", async (_, bytes, name) => {
    expect(await expectCode("REFUSED", read(bytes))).toContain(name);
  });

  it.each(["collections.OrderedDict.fromkeys", "constructor.constructor", "argparse.Namespace"])(
    "notes the foreign %s, and what is built with it",
    async (name) => {
      const [module, ...attribute] = name.split(".");
      const made = new Call(new Name(module!, attribute.join(".")), [1], { a: 2 });
      const call = (await read(pickleOf(made))) as PickleCall;
      expect([call.callable, call.isForeign, call.args, call.state]).toEqual([name, true, [1], new Map([["a", 2]])]);
    },
  );

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
    [
      "a memo of a number that no pickle has, beside one that is stored",
      program(0x4b, 1, 0x71, 0, 0x68, 0, 0x30, 0x6a, 0xff, 0xff, 0xff, 0x7f, 0x2e),
    ],
    ["a list closed without a mark", program(0x80, 2, 0x5d, 0x65, 0x2e)],
    ["a mark taken as a value", program(0x80, 2, 0x28, 0x2e)],
    ["a text longer than the file", program(0x80, 2, 0x58, "\xff\xff\xff\x7f", 0x2e)],
    ["bytes of 2^62", program(0x80, 4, 0x8e, "\0\0\0\0\0\0\0\x40", 0x2e)],
    ["an integer of 2 GiB", program(0x80, 2, 0x8b, "\xff\xff\xff\x7f", 0x2e)],
    ["an instance opcode", program("(ios\nsystem\n.")],
    ["a call of a number", program(0x80, 2, 0x4b, 1, 0x29, 0x52, 0x2e)],
    ["a persistent id in a file without storages", program(0x80, 2, 0x4e, 0x51, 0x2e)],
    ["a global's name that does not end", program(0x80, 2, 0x63, "a".repeat(5000))],
  ])("rejects %s", async (_, bytes) => {
    await expectCode("CORRUPT", read(bytes));
  });

  it.each([
    ["dicts", 0x7d],
    ["lists", 0x5d],
  ])("rejects a file of nothing but %s before they fill the memory", async (_, opcode) => {
    await expectCode("CORRUPT", read(new Uint8Array(2 << 20).fill(opcode)));
  });

  const length64 = (length: number): string => String.fromCharCode(length & 255, length >> 8, 0, 0, 0, 0, 0, 0);
  const length32 = (length: number): string => length64(length).slice(0, 4);
  it.each<[string, Uint8Array, unknown]>([
    ["POP", program(0x4e, 0x4b, 1, 0x30, 0x2e), null],
    ["POP_MARK", program(0x4b, 5, 0x28, 0x4b, 1, 0x31, 0x2e), 5],
    ["DUP and TUPLE2", program(0x4b, 7, 0x32, 0x86, 0x2e), new PickleTuple([7, 7])],
    ["TUPLE1 takes one", program(0x4b, 7, 0x85, 0x2e), new PickleTuple([7])],
    ["NEWTRUE, NEWFALSE, NONE and TUPLE3", program(0x88, 0x89, 0x4e, 0x87, 0x2e), new PickleTuple([true, false, null])],
    ["BININT2", program(0x4d, 1, 2, 0x2e), 513],
    ["LONG4", program(0x8b, length32(2), 1, 2, 0x2e), 513],
    ["BINUNICODE8", program(0x8d, length64(2), "ab", 0x2e), "ab"],
    ["a text that begins with a mark of byte order", program(0x8c, 4, "\xef\xbb\xbfa", 0x2e), "\ufeffa"],
    ["a lone surrogate", program(0x8c, 3, "\xed\xa0\x80", 0x2e), "\ufffd\ufffd\ufffd"],
    ["SHORT_BINBYTES", program(0x43, 2, "ab", 0x2e), Uint8Array.of(97, 98)],
    ["BINBYTES8", program(0x8e, length64(1), "a", 0x2e), Uint8Array.of(97)],
    ["BYTEARRAY8", program(0x96, length64(1), "b", 0x2e), Uint8Array.of(98)],
    ["SHORT_BINSTRING", program(0x55, 1, "\xe9", 0x2e), "é"],
    ["SHORT_BINSTRING of every byte from 128 on", program(0x55, 128, HIGH, 0x2e), HIGH],
    ["BINSTRING", program(0x54, length32(2), "ab", 0x2e), "ab"],
    ["LIST", program(0x28, 0x4b, 1, 0x4b, 2, 0x6c, 0x2e), [1, 2]],
    ["DICT", program(0x28, 0x4b, 1, 0x4b, 2, 0x64, 0x2e), new Map([[1, 2]])],
    ["SETITEM", program(0x7d, 0x4b, 1, 0x4b, 2, 0x73, 0x2e), new Map([[1, 2]])],
    ["APPEND", program(0x5d, 0x4b, 1, 0x61, 0x2e), [1]],
    ["a memo", program(0x4b, 9, 0x72, length32(300), 0x30, 0x6a, length32(300), 0x2e), 9],
    ["MEMOIZE counts", program(0x4b, 8, 0x94, 0x4b, 9, 0x94, 0x68, 0, 0x2e), 8],
    ["protocol 5 in a frame", program(0x80, 5, 0x95, length64(2), 0x4e, 0x2e), null],
    ["bytes of 1024", program(0x42, length32(1024), "a".repeat(1024), 0x2e), new Uint8Array(1024).fill(97)],
    ["bytes of 1025", program(0x42, length32(1025), "a".repeat(1025), 0x2e), new PickleRange("bytes", 5, 1025)],
    ["Python 2's text of 1024", program(0x54, length32(1024), "a".repeat(1024), 0x2e), "a".repeat(1024)],
    [
      "Python 2's text of 1025",
      program(0x54, length32(1025), "a".repeat(1025), 0x2e),
      new PickleRange("bytes", 5, 1025),
    ],
    ["a text of 64 KiB", program(0x58, 0, 0, 1, 0, "a".repeat(65_536), 0x2e), "a".repeat(65_536)],
    ["a longer text", program(0x58, 1, 0, 1, 0, "a".repeat(65_537), 0x2e), new PickleRange("text", 5, 65_537)],
    ["an integer of 256 bytes", program(0x8b, length32(256), "\0".repeat(256), 0x2e), 0],
  ])("reads %s", async (_, bytes, value) => {
    expect(await read(bytes)).toEqual(value);
  });

  it.each<[string, Uint8Array, unknown]>([
    [
      "a dict",
      program("(dp0\nVa\np1\n(lp2\nI1\naI-2\naF0.5\naI01\naL3L\nas."),
      new Map([["a", [1, -2, 0.5, true, 3]]]),
    ],
    ["floats", program("(Finf\nF-inf\nF1.0\nl."), [Infinity, -Infinity, { value: 1 }]],
    ["texts", program("(S'it\\'s \\x41\\n'\nV\\u00e9\\U0001f600\nl."), ["it's A\n", "é😀"]],
  ])("reads %s of protocol 0", async (_, bytes, value) => {
    expect(await read(bytes)).toEqual(value);
  });

  it("keeps of the memo what is recalled later, whatever its number", async () => {
    const put = (number: number) => [0x72, number & 255, (number >> 8) & 255, 0, 0] as const;
    const get = (number: number) => [0x6a, number & 255, (number >> 8) & 255, 0, 0] as const;
    const numbers = [0, 31, 32, 33, 64, 5000];
    const stored = numbers.flatMap((number, i) => [0x4b, i, ...put(number), ...put(number + 1), 0x30]);
    const recalled = numbers.flatMap((number) => get(number));
    expect(await read(program(...stored, 0x28, ...recalled, 0x6c, 0x2e))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("reads sets, and gives bytes of their own", async () => {
    const set = await read(program(0x8f, 0x28, 0x4b, 1, 0x4b, 2, 0x90, 0x2e));
    expect(set).toMatchObject({ items: [1, 2] });
    expect(await read(program(0x28, 0x4b, 1, 0x91, 0x2e))).toMatchObject({ items: [1] });
    const file = program(0x43, 1, "a", 0x2e);
    const bytes = (await read(file)) as Uint8Array;
    expect(bytes.buffer).not.toBe(file.buffer);
    expect(bytes.buffer.byteLength).toBe(1);
  });

  it.each([
    ["items set on a list", program(0x5d, 0x4b, 1, 0x4b, 2, 0x73, 0x2e)],
    ["a key without a value", program(0x7d, 0x28, 0x4b, 1, 0x75, 0x2e)],
    ["an item appended to a dict", program(0x7d, 0x4b, 1, 0x61, 0x2e)],
    ["a global named by numbers", program(0x4b, 1, 0x4b, 2, 0x93, 0x2e)],
    ["a global named by half", program(0x8c, 1, "a", 0x4b, 2, 0x93, 0x2e)],
    ["state built onto a list", program(0x5d, 0x4e, 0x62, 0x2e)],
    ["a call with a list of arguments", program("ccollections\nOrderedDict\n", 0x5d, 0x52, 0x2e)],
    ["a pair of one", program(0x4b, 1, 0x86, 0x2e)],
    ["a pair across a mark", program(0x4b, 1, 0x28, 0x4b, 1, 0x86, 0x2e)],
    ["a tuple closed without a mark", program(0x4b, 1, 0x74, 0x2e)],
    ["an integer of 257 bytes", program(0x8b, length32(257), "\0".repeat(257), 0x2e)],
    ["a line of 1025", program("L", "1".repeat(1025), "\n", 0x2e)],
    ["a memo that is recalled onto nothing", program(0x4b, 1, 0x68, 0, 0x2e)],
  ])("rejects %s", async (_, bytes) => {
    await expectCode("CORRUPT", read(bytes));
  });

  it("makes records of a class's objects, also where one is recalled", async () => {
    const limits = {
      globals: new Set(["a.B"]),
      records: new Map([["a.B", { built: (state: PickleState) => [state.get("x")] }]]),
    };
    const readIt = (...parts: (number | string)[]) =>
      readPickleOf(memorySource("test.pkl", program(0x28, "ca\nB\n", 0x29, 0x81, 0x94, ...parts)), limits);
    const built = [0x7d, 0x8c, 1, "x", 0x4b, 6, 0x73, 0x28, 0x8c, 1, "x", 0x4b, 7, 0x75, 0x62] as const;
    expect(await readIt(...built, 0x68, 0, 0x6c, 0x2e)).toEqual([[7], [7]]);
    await expectCode("CORRUPT", readIt(0x68, 0, ...built, 0x6c, 0x2e));
    await expectCode("CORRUPT", readIt(0x4b, 1, 0x62, 0x6c, 0x2e));
  });

  it("counts what values take in memory", async () => {
    const within = (memory: number, ...parts: number[]) =>
      readPickleOf(memorySource("test.pkl", program(...parts, 0x2e)), { ...LIMITS, memory });
    expect(await within(16, 0x4e)).toBe(null);
    await expectCode("CORRUPT", within(15, 0x4e));
    expect(await within(160, 0x5d)).toEqual([]);
    await expectCode("CORRUPT", within(159, 0x5d));
    expect(await within(288, 0x7d)).toEqual(new Map());
    await expectCode("CORRUPT", within(287, 0x7d));
    expect(await within(16 + 48 + 16, 0x4b, 1, 0x94, 0x68, 0)).toBe(1);
    await expectCode("CORRUPT", within(16 + 48 + 15, 0x4b, 1, 0x94, 0x68, 0));
    const lists = memorySource("test.pkl", new Uint8Array(1 << 20).fill(0x5d));
    await expectCode("CORRUPT", readPickleOf(lists, { ...LIMITS, memory: 1 << 30 }));
  });

  it("reads integers of any sign and length", async () => {
    const long = (...bytes: number[]): Promise<unknown> => read(program(0x80, 2, 0x8a, bytes.length, ...bytes, 0x2e));
    expect(await long()).toBe(0);
    expect(await long(0xff)).toBe(-1);
    expect(await long(0, 0x80, 0)).toBe(32768);
    expect(await long(0, 0, 0, 0, 0, 0, 0, 0, 0x40)).toBe(2n ** 70n);
  });
});
