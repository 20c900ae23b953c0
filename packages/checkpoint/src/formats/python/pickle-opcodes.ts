/** The opcodes of pickles that data need, and what follows each. Source: CPython's pickletools. */

/** Bytes; a length of so many bytes, and as many more; or lines. */
type Argument = number | "length of 1" | "length of 4" | "length of 8" | "line" | "two lines";

const OPCODES = {
  PROTO: [0x80, 1],
  FRAME: [0x95, 8],
  STOP: [0x2e, 0],
  MARK: [0x28, 0],
  POP: [0x30, 0],
  POP_MARK: [0x31, 0],
  DUP: [0x32, 0],
  NONE: [0x4e, 0],
  NEWTRUE: [0x88, 0],
  NEWFALSE: [0x89, 0],
  INT: [0x49, "line"],
  LONG: [0x4c, "line"],
  FLOAT: [0x46, "line"],
  BININT: [0x4a, 4],
  BININT1: [0x4b, 1],
  BININT2: [0x4d, 2],
  BINFLOAT: [0x47, 8],
  LONG1: [0x8a, "length of 1"],
  LONG4: [0x8b, "length of 4"],
  STRING: [0x53, "line"],
  UNICODE: [0x56, "line"],
  SHORT_BINUNICODE: [0x8c, "length of 1"],
  BINUNICODE: [0x58, "length of 4"],
  BINUNICODE8: [0x8d, "length of 8"],
  SHORT_BINBYTES: [0x43, "length of 1"],
  BINBYTES: [0x42, "length of 4"],
  BINBYTES8: [0x8e, "length of 8"],
  BYTEARRAY8: [0x96, "length of 8"],
  SHORT_BINSTRING: [0x55, "length of 1"],
  BINSTRING: [0x54, "length of 4"],
  EMPTY_DICT: [0x7d, 0],
  EMPTY_LIST: [0x5d, 0],
  EMPTY_TUPLE: [0x29, 0],
  EMPTY_SET: [0x8f, 0],
  TUPLE1: [0x85, 0],
  TUPLE2: [0x86, 0],
  TUPLE3: [0x87, 0],
  TUPLE: [0x74, 0],
  LIST: [0x6c, 0],
  DICT: [0x64, 0],
  FROZENSET: [0x91, 0],
  SETITEM: [0x73, 0],
  SETITEMS: [0x75, 0],
  APPEND: [0x61, 0],
  APPENDS: [0x65, 0],
  ADDITEMS: [0x90, 0],
  PUT: [0x70, "line"],
  BINPUT: [0x71, 1],
  LONG_BINPUT: [0x72, 4],
  MEMOIZE: [0x94, 0],
  GET: [0x67, "line"],
  BINGET: [0x68, 1],
  LONG_BINGET: [0x6a, 4],
  GLOBAL: [0x63, "two lines"],
  STACK_GLOBAL: [0x93, 0],
  REDUCE: [0x52, 0],
  NEWOBJ: [0x81, 0],
  NEWOBJ_EX: [0x92, 0],
  BUILD: [0x62, 0],
  BINPERSID: [0x51, 0],
} as const satisfies Record<string, readonly [code: number, Argument]>;

export type Opcode = keyof typeof OPCODES;

const ENTRIES = Object.entries(OPCODES) as [Opcode, readonly [number, Argument]][];

/** The opcodes' numbers. */
export const OP = Object.fromEntries(ENTRIES.map(([name, [code]]) => [name, code])) as {
  readonly [name in Opcode]: (typeof OPCODES)[name][0];
};

/** What follows an opcode, by its number. */
export const ARGUMENTS: readonly (Argument | undefined)[] = Array.from(
  { length: 256 },
  (_, code) => ENTRIES.find(([, [own]]) => own === code)?.[1][1],
);
