/** Writes MessagePack byte for byte as `flax.serialization.to_bytes` does for nested dicts of arrays. */
import { bytesOf, bytesPerElement } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { duplicate } from "../../formats/bytes/errors";
import { ARRAY, CHUNKED } from "../../formats/flax/read";
import { torchTypeNames } from "../../formats/torch/tensors";
import { wholeOf } from "../../layout/box";
import { streamTensors } from "../../read/stream";
import { known, type Part, SequenceWriter } from "../files/write-sequence";
import { type ExportOptions, writeWhole } from "../files/write-whole";

/** flax's, above which an array is cut. */
const LARGEST_CHUNK = 2 ** 30;

type Tree = Map<string, Tree | SourceTensor>;

export interface FlaxOptions extends ExportOptions {
  /** Arrays of more bytes are stored in chunks. Default 1 GiB, flax's own. */
  readonly largestChunk?: number;
}

/**
 * Writes the tensors, in dicts by the dots of their names.
 *
 * @throws OptError DUPLICATE where a name is an array and a dict, MISSING for gaps, IO
 */
export async function writeFlax(source: TensorSource, path: string, options: FlaxOptions = {}): Promise<void> {
  const tensors: SourceTensor[] = [];
  const parts: Part[] = [];
  const announce = (tree: Tree): void => {
    parts.push(known(mapHead(tree.size)));
    for (const [key, node] of tree) {
      parts.push(known(text(key)));
      if (node instanceof Map) announce(node);
      else {
        tensors.push(node);
        parts.push(...arrayParts(node, options.largestChunk ?? LARGEST_CHUNK));
      }
    }
  };
  announce(nested(source, path));
  await writeWhole(path, options, async (file) => {
    const writer = new SequenceWriter(file);
    writer.announce(parts);
    const write = (bytes: Uint8Array) => writer.write(bytes);
    await streamTensors(
      tensors.map((tensor) => ({ tensor, targets: [{ box: wholeOf(tensor.shape), write }] })),
      options,
    );
    return writer.finish();
  });
}

function nested({ tensors }: TensorSource, path: string): Tree {
  const root: Tree = new Map();
  for (const tensor of tensors.values()) {
    const names = tensor.name.split(".");
    const last = names.pop()!;
    let tree = root;
    for (const name of names) {
      const inner = tree.get(name) ?? new Map();
      if (!(inner instanceof Map)) throw bothWays(inner.name, path);
      tree.set(name, inner);
      tree = inner;
    }
    if (tree.has(last)) throw bothWays(tensor.name, path);
    tree.set(last, tensor);
  }
  return root;
}

const bothWays = (name: string, path: string) =>
  duplicate(path, `${JSON.stringify(name)} would be an array and a dict`, "Leave state out (exclude), or rename it.");

function arrayParts({ dtype, shape }: SourceTensor, largest: number): Part[] {
  const { dtype: name } = torchTypeNames(dtype);
  const array = (lengths: readonly number[], content: number): Part => {
    const inner = [0x93, ...listHead(lengths.length), ...lengths.flatMap(integer), ...text(name), ...binHead(content)];
    return known(Uint8Array.of(...extensionHead(inner.length + content), ...inner), content);
  };
  const byteLength = bytesOf({ dtype, shape });
  if (byteLength <= largest) return [array(shape, byteLength)];
  const width = bytesPerElement(dtype);
  const elements = Math.max(1, Math.floor(largest / width));
  const count = Math.ceil(byteLength / width / elements);
  const head = [
    ...[...mapHead(3), ...text(CHUNKED), 0xc3, ...text("shape"), ...mapHead(shape.length)],
    ...shape.flatMap((length, d) => [...text(`${d}`), ...integer(length)]),
    ...[...text("chunks"), ...mapHead(count)],
  ];
  const chunks = Array.from({ length: count }, (_, i): Part[] => {
    const held = Math.min(elements, byteLength / width - i * elements);
    return [known(text(`${i}`)), array([held], held * width)];
  });
  return [known(Uint8Array.from(head)), ...chunks.flat()];
}

/** Big-endian, of 1, 2, 4 or 8 bytes. */
const bigEndian = (value: number, width: number): number[] =>
  Array.from({ length: width }, (_, i) => Number((BigInt(value) >> BigInt(8 * (width - 1 - i))) & 255n));

/** The shortest of the codes that follow each other for widths 1, 2, 4 and 8. */
function sized(value: number, code: number, narrowest = 1): number[] {
  let width = narrowest;
  let at = code;
  for (; value >= 256 ** width; width *= 2) at++;
  return [at, ...bigEndian(value, width)];
}

const integer = (value: number): number[] => (value < 128 ? [value] : sized(value, 0xcc));
const binHead = (length: number): number[] => sized(length, 0xc4);
const listHead = (length: number): number[] => (length < 16 ? [0x90 | length] : sized(length, 0xdc, 2));
const mapHead = (length: number): Uint8Array => Uint8Array.from(length < 16 ? [0x80 | length] : sized(length, 0xde, 2));

function text(value: string): Uint8Array {
  const bytes = new TextEncoder().encode(value);
  return Uint8Array.of(...(bytes.length < 32 ? [0xa0 | bytes.length] : sized(bytes.length, 0xd9)), ...bytes);
}

/** Lengths of 1, 2, 4, 8 and 16 have codes of their own. */
function extensionHead(length: number): number[] {
  const fixed = [1, 2, 4, 8, 16].indexOf(length);
  return [...(fixed < 0 ? sized(length, 0xc7) : [0xd4 + fixed]), ARRAY];
}
