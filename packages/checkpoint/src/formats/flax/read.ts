/** MessagePack as `flax.serialization` writes it: nested dicts whose arrays are extensions, and large ones in chunks. */
import { type Json, mostTensors } from "../../format/source";
import { isCount } from "../../layout/counts";
import { ByteCursor } from "../bytes/cursor";
import { corrupt, quoted } from "../bytes/errors";
import { type ForeignTensor, wholeTensors } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { joined, partOf } from "../bytes/source";
import { stepOf } from "../torch/read";
import { dtypeNamed } from "../torch/tensors";

export const CHUNKED = "__msgpack_chunked_array__";
/** Extensions: an array, Python's complex number, and a number of NumPy's. */
export const ARRAY = 1;
const COMPLEX = 2;
const SCALAR = 3;

const DEEPEST = 100;
const LONGEST_TEXT = 16 * 1024 * 1024;
/** Objects that one tensor takes at most: its array, the dicts around it, chunks. */
const NODES_PER_TENSOR = 4;

/** An array as the file describes it. */
class ArrayNode {
  constructor(
    readonly shape: readonly number[],
    readonly dtype: string,
    readonly bytes: ForeignTensor["bytes"],
  ) {}
}

type Node = Json | Uint8Array | Map<string, Node> | Node[] | ArrayNode;

export const flaxReader = formatReader("flax msgpack", async ({ path, file }) => {
  const unpacker = new Unpacker(new ByteCursor(await file()));
  const root = await unpacker.node();
  if (unpacker.cursor.remaining > 0) throw unpacker.cursor.corrupt("more follows the object");
  const tensors: [string, ForeignTensor][] = [];
  const unreadable = new Map<string, string>();
  const values: [string, Json][] = [];
  const visit = (node: Node, name: string): void => {
    const array = node instanceof Map && node.has(CHUNKED) ? unchunked(node, path) : node;
    const members = array instanceof Map || Array.isArray(array) ? array.entries() : undefined;
    if (members !== undefined)
      for (const [key, child] of members) visit(child, name === "" ? `${key}` : `${name}.${key}`);
    else if (!(array instanceof ArrayNode))
      values.push([name, array instanceof Uint8Array ? [...array] : (array as Json)]);
    else if (dtypeNamed(array.dtype) === undefined) unreadable.set(name, `it has the dtype ${quoted(array.dtype)}`);
    else tensors.push([name || "tensor", { ...array, dtype: dtypeNamed(array.dtype)! }]);
  };
  visit(root, "");
  const said = Object.fromEntries(values);
  return { tensors: wholeTensors(tensors, path), values: said, unreadable, step: stepOf(said) };
});

/** An array of more than 1 GiB, put together. */
function unchunked(node: Map<string, Node>, path: string): ArrayNode {
  const itemsOf = (key: string) => {
    const items = node.get(key);
    return items instanceof Map ? [...items.values()] : [];
  };
  const [shape, chunks] = [itemsOf("shape"), itemsOf("chunks")];
  const [first] = chunks;
  const areAlike = chunks.every((chunk) => chunk instanceof ArrayNode && chunk.dtype === (first as ArrayNode).dtype);
  if (!(first instanceof ArrayNode) || !areAlike || !shape.every(isCount))
    throw corrupt(path, "the chunks of an array are no arrays of one dtype");
  return new ArrayNode(
    shape,
    first.dtype,
    joined(
      path,
      (chunks as ArrayNode[]).map(({ bytes }) => bytes),
    ),
  );
}

/** Source: MessagePack's specification. */
class Unpacker {
  #left: number;

  constructor(readonly cursor: ByteCursor) {
    this.#left = NODES_PER_TENSOR * mostTensors(cursor.source.byteLength);
  }

  async node(depth = 0): Promise<Node> {
    const { cursor } = this;
    if (depth > DEEPEST || --this.#left < 0) throw cursor.corrupt("the objects nest or repeat without end");
    const code = await this.#number(1);
    if (code < 0x80) return code;
    if (code >= 0xe0) return code - 0x100;
    if (code < 0x90) return this.#map(code & 15, depth);
    if (code < 0xa0) return this.#list(code & 15, depth);
    if (code < 0xc0) return this.#text(code & 31);
    switch (code) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return code === 0xc3;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return (await this.#bytes(await this.#number(1 << (code - 0xc4)))).slice();
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.#extension(await this.#number(1 << (code - 0xc7)), depth);
      case 0xca:
      case 0xcb:
        return this.#float(code === 0xca ? 4 : 8);
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#number(1 << (code - 0xcc));
      case 0xcf:
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return this.#integer(code === 0xcf ? 8 : 1 << (code - 0xd0), code !== 0xcf);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(await this.#number(1 << (code - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#list(await this.#number(2 << (code - 0xdc)), depth);
      case 0xde:
      case 0xdf:
        return this.#map(await this.#number(2 << (code - 0xde)), depth);
      case 0xc1:
        throw cursor.corrupt("MessagePack has no such object");
      default:
        return this.#extension(1 << (code - 0xd4), depth);
    }
  }

  async #bytes(length: number): Promise<Uint8Array> {
    if (length > LONGEST_TEXT) throw this.cursor.corrupt(`a value of ${length} bytes is named`);
    await this.cursor.need(length);
    return this.cursor.take(length);
  }

  /** An unsigned number of 1, 2 or 4 bytes. */
  async #number(width: number): Promise<number> {
    return (await this.#bytes(width)).reduce((number, byte) => number * 256 + byte, 0);
  }

  async #integer(width: number, isSigned: boolean): Promise<Json> {
    const bits = (await this.#bytes(width)).reduce((number, byte) => number * 256n + BigInt(byte), 0n);
    const value = isSigned ? BigInt.asIntN(8 * width, bits) : bits;
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }

  async #float(width: number): Promise<Json> {
    const { buffer, byteOffset } = await this.#bytes(width);
    const view = new DataView(buffer, byteOffset, width);
    const value = width === 4 ? view.getFloat32(0) : view.getFloat64(0);
    return Number.isFinite(value) ? value : String(value);
  }

  async #text(length: number): Promise<string> {
    return new TextDecoder().decode(await this.#bytes(length));
  }

  async #list(length: number, depth: number): Promise<Node[]> {
    const items: Node[] = [];
    while (items.length < length) items.push(await this.node(depth + 1));
    return items;
  }

  async #map(length: number, depth: number): Promise<Map<string, Node>> {
    const members = new Map<string, Node>();
    for (let i = 0; i < length; i++) {
      const key = await this.node(depth + 1);
      const isName = typeof key === "string" || typeof key === "number";
      if (!isName || members.has(`${key}`)) throw this.cursor.corrupt("a dict has a key twice, or one that is no name");
      members.set(`${key}`, await this.node(depth + 1));
    }
    return members;
  }

  /** An array is a list of its shape, its dtype and its bytes, which stay where they are. */
  async #extension(length: number, depth: number): Promise<Node> {
    const { cursor } = this;
    const kind = await this.#number(1);
    const end = cursor.position + length;
    if (kind !== ARRAY && kind !== SCALAR && kind !== COMPLEX)
      throw cursor.corrupt(`an extension has the type ${kind}`);
    if (kind === COMPLEX) return this.node(depth + 1);
    const isTriple = (await this.#number(1)) === 0x93;
    const [shape, dtype] = [await this.node(depth + 1), await this.node(depth + 1)];
    const code = await this.#number(1);
    const byteLength = code >= 0xc4 && code <= 0xc6 ? await this.#number(1 << (code - 0xc4)) : -1;
    const isArray = isTriple && Array.isArray(shape) && shape.every(isCount) && typeof dtype === "string";
    if (!isArray || cursor.position + byteLength !== end) throw cursor.corrupt("an array is no shape, dtype and bytes");
    const bytes = partOf(cursor.source, cursor.position, byteLength);
    cursor.skip(byteLength);
    return new ArrayNode(shape as number[], dtype, bytes);
  }
}
