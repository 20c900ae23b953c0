/** Small Orbax checkpoints: two that orbax 0.12 wrote (orbax/make.py), and others made here. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { crc32c } from "../../src/formats/orbax/crc32c";
import { floats } from "./made-files";

type Files = Record<string, Uint8Array>;

/** What orbax wrote: `params.w` of [4, 6] and `params.b` of bfloat16, in four chunks each, `step`, `lr` and `name`. */
export function writtenByOrbax(kind: "zarr2" | "zarr3"): Files {
  const folder = fileURLToPath(new URL(`./orbax/${kind}/`, import.meta.url));
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = `${parentPath}/${name}`.replaceAll("//", "/");
      return [path.slice(folder.length), new Uint8Array(readFileSync(path))];
    }),
  );
}

/** A frame of Zstandard whose only block is stored as it is. */
export function zstdFrame(bytes: Uint8Array): Uint8Array {
  const head = Buffer.alloc(12);
  head.writeUInt32LE(0xfd2fb528, 0);
  head[4] = 0xa0;
  head.writeUInt32LE(bytes.length, 5);
  head.writeUIntLE(bytes.length * 8 + 1, 9, 3);
  return Buffer.concat([head, bytes]);
}

function uleb(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...uleb(Math.floor(value / 128))];
}

const ulebs = (values: readonly number[]): number[] => values.flatMap(uleb);

/** A node or manifest of OCDBT around its body, with the length and checksum that it must have. */
export function framed(magic: number, body: Uint8Array, isPacked = false): Uint8Array {
  const inner = isPacked ? zstdFrame(body) : body;
  const bytes = Buffer.alloc(18 + inner.length);
  bytes.writeUInt32BE(magic, 0);
  bytes.writeBigUInt64LE(BigInt(bytes.length), 4);
  bytes[13] = isPacked ? 1 : 0;
  bytes.set(inner, 14);
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}

export const NODE = 0x0cdb20de;
export const MANIFEST = 0x0cdb3a2a;

/** A table of one file. */
const table = (path: string, base = ""): number[] => [
  1,
  ...ulebs([base.length + path.length, base.length]),
  ...Buffer.from(base + path),
];

/** The references of a manifest or node to `nodes` in its only file. */
const references = (nodes: readonly { begin: number; length: number }[]): number[] =>
  ulebs([
    ...nodes.map(() => 0),
    ...nodes.map(({ begin }) => begin),
    ...nodes.map(({ length }) => length),
    ...nodes.map(() => 1),
    ...nodes.map(() => 0),
    ...nodes.map(() => 0),
  ]);

/** The leaf of these values: the long ones are in `file` from the place that `outside` gives. */
export function leafOf(
  values: readonly (readonly [string, Uint8Array])[],
  file: string,
  outside: ReadonlyMap<string, number>,
): Uint8Array {
  const keys = values.map(([key]) => key);
  const places = keys.flatMap((key) => (outside.has(key) ? [outside.get(key)!] : []));
  const inline = values.filter(([key]) => !outside.has(key)).map(([, bytes]) => bytes);
  const columns = [
    ...[
      0,
      ...table(file),
      ...uleb(keys.length),
      ...keys.slice(1).map(() => 0),
      ...ulebs(keys.map((key) => key.length)),
    ],
    ...Buffer.from(keys.join("")),
    ...ulebs(values.map(([, bytes]) => bytes.length)),
    ...keys.map((key) => (outside.has(key) ? 1 : 0)),
    ...places.map(() => 0),
    ...ulebs(places),
  ];
  return Buffer.concat([Uint8Array.from(columns), ...inline]);
}

/** A store of two leaves below a root; `p/d/0` holds the nodes and the values above 40 bytes. `change` damages a body before it is framed. */
export function ocdbtFolder(
  values: Files,
  { path = "d/0", isPacked = true, change = (_node: string, body: Uint8Array) => body, cycle = false } = {},
): Files {
  const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const data: Uint8Array[] = [];
  let end = 0;
  const put = (bytes: Uint8Array): { begin: number; length: number } => {
    data.push(bytes);
    end += bytes.length;
    return { begin: end - bytes.length, length: bytes.length };
  };
  const outside = new Map(
    entries.filter(([, bytes]) => bytes.length > 40).map(([key, bytes]) => [key, put(bytes).begin]),
  );
  const half = Math.ceil(entries.length / 2);
  const leaves = [entries.slice(0, half), entries.slice(half)].map((part, i) =>
    put(framed(NODE, change(`leaf ${i}`, leafOf(part, path, outside)), isPacked)),
  );
  const below = cycle ? [leaves[0]!, leaves[0]!] : leaves;
  const firsts = [entries[0]![0], entries[half]![0]];
  const root = [
    1,
    ...table(path),
    2,
    0,
    ...ulebs(firsts.map(({ length }) => length)),
    0,
    0,
    ...Buffer.from(firsts.join("")),
    ...references(below),
  ];
  const node = put(framed(NODE, change("root", Uint8Array.from(root)), isPacked));
  const config = [...new Array<number>(16).fill(7), 0, ...ulebs([1024, 100_000_000]), 4, 1, 3, 0, 0, 0];
  const manifest = [
    ...config,
    ...table(path, "p/"),
    1,
    1,
    1,
    ...references([node]),
    ...new Array<number>(8).fill(0),
    0,
  ];
  return {
    "manifest.ocdbt": framed(MANIFEST, change("manifest", Uint8Array.from(manifest)), isPacked),
    [`p/${path}`]: Buffer.concat(data),
  };
}

export const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** `w` of [3, 4] in chunks of [2, 3]: element [r, c] is 10 r + c. */
export function zarrValues({
  order = "C",
  compressor = { id: "zstd" } as { id: string } | null,
  shape = [3, 4],
  chunks = [2, 3],
} = {}): Files {
  const files: Files = {
    "w/.zarray": json({
      zarr_format: 2,
      shape,
      chunks,
      compressor,
      dtype: "<f4",
      order,
      filters: null,
      fill_value: null,
    }),
  };
  for (const [r, c] of [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const) {
    const rows = [0, 1].map((i) => [0, 1, 2].map((j) => (2 * r + i) * 10 + 3 * c + j));
    const numbers = order === "C" ? rows.flat() : [0, 1, 2].flatMap((j) => rows.map((row) => row[j]!));
    files[`w/${r}.${c}`] = compressor?.id === "zstd" ? zstdFrame(floats(...numbers)) : floats(...numbers);
  }
  return files;
}

/** The same `w` in one shard of [6, 6] of zarr 3. Its inner chunks of [3, 2] that are beyond the array are not stored. */
export function shardedZarr(): Files {
  const codecs = [{ name: "bytes", configuration: { endian: "little" } }];
  const inner = [0, 1].map((c) => floats(...[0, 1, 2].flatMap((r) => [W[4 * r + 2 * c]!, W[4 * r + 2 * c + 1]!])));
  const index = Buffer.alloc(6 * 16, 0xff);
  inner.forEach(({ length }, i) => {
    index.writeBigUInt64LE(BigInt(i * length), 16 * i);
    index.writeBigUInt64LE(BigInt(length), 16 * i + 8);
  });
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32c(index));
  return {
    "w/zarr.json": json({
      zarr_format: 3,
      shape: [3, 4],
      data_type: "float32",
      chunk_grid: { name: "regular", configuration: { chunk_shape: [6, 6] } },
      chunk_key_encoding: { name: "default" },
      codecs: [
        {
          name: "sharding_indexed",
          configuration: { chunk_shape: [3, 2], codecs, index_codecs: [...codecs, { name: "crc32c" }] },
        },
      ],
    }),
    "w/c/0/0": Buffer.concat([...inner, index, checksum]),
  };
}

export const W = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23];

/** `_METADATA` of a tree with `w`. */
export const treeMetadata = (
  names = ["w"],
  options: object = { store_array_data_equal_to_fill_value: true },
  nones: readonly string[] = [],
): Uint8Array =>
  json({
    tree_metadata: Object.fromEntries(
      names.map((name) => [
        `('${name}',)`,
        {
          key_metadata: [{ key: name, key_type: 2 }],
          value_metadata: { value_type: "jax.Array", skip_deserialize: nones.includes(name) },
        },
      ]),
    ),
    ...options,
  });
