/** MindSpore's values, field by field: what newer versions add is passed over, what does not fit is rejected. */
import { describe, expect, it } from "vitest";
import { floats, mindsporeFile } from "../../../testing/files/made-files";
import { memorySource, readBytes } from "../bytes/source";
import { readMindsporeValues } from "./values";

type Bytes = readonly number[];
const text = (value: string): Bytes => [...new TextEncoder().encode(value)];
/** A field of bytes, and one of a number. */
const field = (number: number, bytes: Bytes): Bytes => [number * 8 + 2, bytes.length, ...bytes];
const count = (number: number, value: number): Bytes => [number * 8, value];
const fixed = (number: number, width: 4 | 8): Bytes => [
  number * 8 + (width === 4 ? 5 : 1),
  ...new Array<number>(width).fill(1),
];

const NAME = field(1, text("w"));
const DIMS = count(1, 2);
const TYPE = field(2, text("Float32"));
const CONTENT = field(3, [...floats(1, 2)]);
const tensor = (...parts: readonly Bytes[]): Bytes => field(2, parts.flat());
const file = (...parts: readonly Bytes[]) => field(1, parts.flat());

const WHOLE = file(NAME, tensor(DIMS, TYPE, CONTENT));

async function read(bytes: Uint8Array | Bytes) {
  const source = memorySource("a.ckpt", Uint8Array.from(bytes));
  const { values, crc, end } = await readMindsporeValues(source);
  const contents = await Promise.all(values.map(({ content }) => readBytes(content, 0, content.byteLength)));
  return { crc, end, values: values.map(({ tag, dims, type }, i) => ({ tag, dims, type, content: contents[i] })) };
}

const W = { tag: "w", dims: [2], type: "Float32", content: floats(1, 2) };

describe("MindSpore's values", () => {
  it.each<[string, Bytes]>([
    ["in the order of their numbers", file(NAME, tensor(DIMS, TYPE, CONTENT))],
    ["in another order", file(tensor(CONTENT, TYPE, DIMS), NAME)],
    ["with packed dims", file(NAME, tensor(field(1, [2]), TYPE, CONTENT))],
    [
      "beside fields of the file that are not known",
      [...count(2, 7), ...file(NAME, tensor(DIMS, TYPE, CONTENT)), ...field(9, [1, 2])],
    ],
    ["beside a number that has the values' own field", [...count(1, 7), ...file(NAME, tensor(DIMS, TYPE, CONTENT))]],
    [
      "beside fields of the value that are not known",
      file(count(4, 1), NAME, fixed(5, 4), tensor(DIMS, TYPE, CONTENT), field(6, [1])),
    ],
    [
      "beside fields of the tensor that are not known",
      file(NAME, tensor(fixed(7, 8), DIMS, count(2, 5), TYPE, CONTENT, field(4, [9]))),
    ],
  ])("are read %s", async (_, bytes) => {
    expect((await read(bytes)).values).toEqual([W]);
  });

  it.each([127, 128, 129, 4096])("may have names of %d bytes, and as many elements", async (length) => {
    const [name, content] = ["n".repeat(length), new Uint8Array(length).fill(3)];
    const { values } = await read(mindsporeFile([[name, [length], "Int8", content]]));
    expect(values).toEqual([{ tag: name, dims: [length], type: "Int8", content }]);
  });

  it("may have 64 dims", async () => {
    const dims = new Array<number>(64).fill(1);
    expect((await read(file(NAME, tensor(field(1, dims), TYPE, field(3, []))))).values).toMatchObject([{ dims }]);
  });

  it("of an empty file there are none", async () => {
    expect(await read([])).toEqual({ values: [], crc: undefined, end: 0 });
  });

  it("end before the checksum", async () => {
    const plain = mindsporeFile([["w", [2], "Float32", floats(1, 2)]]);
    expect(await read(plain)).toEqual({ values: [W], crc: undefined, end: plain.length });
    const { values, crc, end } = await read(mindsporeFile([["w", [2], "Float32", floats(1, 2)]], { crc: true }));
    expect([values, crc, end]).toEqual([[W], expect.any(Number), plain.length]);
  });

  it.each<[string, string, Bytes]>([
    ["without a name", "CORRUPT", file(tensor(DIMS, TYPE, CONTENT))],
    ["without a tensor", "CORRUPT", file(NAME)],
    ["without a type", "CORRUPT", file(NAME, tensor(DIMS, CONTENT))],
    ["without contents", "CORRUPT", file(NAME, tensor(DIMS, TYPE))],
    ["of a growing table", "UNSUPPORTED", file(NAME, field(3, [1]))],
    ["with a negative dim", "CORRUPT", file(NAME, tensor([8, ...new Array<number>(9).fill(255), 1], TYPE, CONTENT))],
    ["with 65 dims", "CORRUPT", file(NAME, tensor(field(1, new Array<number>(65).fill(1)), TYPE, CONTENT))],
    ["longer than the file", "CORRUPT", file(NAME, tensor(DIMS, TYPE, CONTENT)).slice(0, -1)],
    ["of no field", "CORRUPT", [2, 0]],
    ["beside a field without a number", "CORRUPT", [...WHOLE, 2, 0]],
    ["beside a group", "CORRUPT", [...WHOLE, 0x1b, 0x1c]],
    ["beside a number that does not end", "CORRUPT", [...WHOLE, 0x10, ...new Array<number>(10).fill(255), 1]],
    ["beside a number above 2^53", "CORRUPT", [...WHOLE, 0x10, ...new Array<number>(8).fill(255), 127]],
    ["beside a number that leaves its message", "CORRUPT", [...field(1, [...NAME, 0x20]), ...WHOLE]],
    ["whose name leaves its message", "CORRUPT", [...field(1, [10, 40, 1]), ...WHOLE, ...WHOLE]],
    ["with a name of 4,097 bytes", "CORRUPT", [...mindsporeFile([["n".repeat(4097), [2], "Float32", floats(1, 2)]])]],
    ["encrypted", "UNSUPPORTED", [0xd9, 0x5e, 0x3a, 0x7f, 0, 0]],
    ["that is nothing but another field", "CORRUPT", count(2, 7)],
  ])("%s: rejected with %s", async (_, code, bytes) => {
    await expect(read(bytes)).rejects.toMatchObject({ code });
  });
});
