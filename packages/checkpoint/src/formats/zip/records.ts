/** The records of zip archives, field by field, for who reads and who writes them: PKWARE's APPNOTE.TXT, 4.3. */

type Width = 2 | 4 | 8;

/** Little-endian numbers, one after another. */
export function littleEndian(...fields: readonly (readonly [value: number, width: Width])[]): Uint8Array {
  const bytes = new Uint8Array(fields.reduce((sum, [, width]) => sum + width, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, width] of fields) {
    setNumber(view, at, value, width);
    at += width;
  }
  return bytes;
}

function setNumber(view: DataView, at: number, value: number, width: Width): void {
  if (width === 8) view.setBigUint64(at, BigInt(value), true);
  else if (width === 4) view.setUint32(at, value, true);
  else view.setUint16(at, value, true);
}

/** A number of 64 bits; NaN above the exact integers. */
export function wideAt(view: DataView<ArrayBufferLike>, at: number): number {
  const value = Number(view.getBigUint64(at, true));
  return Number.isSafeInteger(value) ? value : Number.NaN;
}

class ZipRecord<Name extends string> {
  readonly byteLength: number;
  readonly #signature: number;
  readonly #fields: readonly [Name, Width][];

  constructor(signature: number, fields: Readonly<Record<Name, Width>>) {
    this.#signature = signature;
    this.#fields = Object.entries(fields) as [Name, Width][];
    this.byteLength = this.#fields.reduce((sum, [, width]) => sum + width, 4);
  }

  isAt(view: DataView<ArrayBufferLike>, at = 0): boolean {
    return view.getUint32(at, true) === this.#signature;
  }

  /** Numbers above the exact integers are NaN. */
  read(view: DataView<ArrayBufferLike>, at = 0): Record<Name, number> {
    const values = {} as Record<Name, number>;
    let from = at + 4;
    for (const [name, width] of this.#fields) {
      if (width === 8) values[name] = wideAt(view, from);
      else values[name] = width === 4 ? view.getUint32(from, true) : view.getUint16(from, true);
      from += width;
    }
    return values;
  }

  /** What is not given is 0. */
  write(values: Partial<Readonly<Record<Name, number>>>): Uint8Array {
    const bytes = new Uint8Array(this.byteLength);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, this.#signature, true);
    let at = 4;
    for (const [name, width] of this.#fields) {
      setNumber(view, at, values[name] ?? 0, width);
      at += width;
    }
    return bytes;
  }
}

/** Stand where the number is in the record for 64 bits. */
export const SEE_WIDE = 0xffffffff;
export const SEE_WIDE_COUNT = 0xffff;
/** The extra field that holds such numbers of a member. */
export const WIDE_FIELD = 1;

/** Flags of a member. */
export const ENCRYPTED = 1;
export const CRC_BEHIND = 8;
export const UTF8 = 0x800;

/** Before a member's contents, with its name and extra fields behind it. */
export const LOCAL = new ZipRecord(0x04034b50, {
  needs: 2,
  flags: 2,
  method: 2,
  time: 4,
  crc32: 4,
  packed: 4,
  size: 4,
  name: 2,
  extra: 2,
});

/** One of the directory: its name, extra fields and comment stand behind it. */
export const CENTRAL = new ZipRecord(0x02014b50, {
  ...({ madeBy: 2, needs: 2, flags: 2, method: 2, time: 4, crc32: 4, packed: 4, size: 4, name: 2 } as const),
  ...({ extra: 2, comment: 2, disk: 2, internal: 2, external: 4, begin: 4 } as const),
});

/** The directory's end, the last of an archive but for a comment. */
export const END = new ZipRecord(0x06054b50, {
  disk: 2,
  directoryDisk: 2,
  countHere: 2,
  count: 2,
  size: 4,
  begin: 4,
  comment: 2,
});

export const WIDE_END = new ZipRecord(0x06064b50, {
  rest: 8,
  madeBy: 2,
  needs: 2,
  disk: 4,
  directoryDisk: 4,
  countHere: 8,
  count: 8,
  size: 8,
  begin: 8,
});

/** Before the end: where the wide end is. */
export const WIDE_LOCATOR = new ZipRecord(0x07064b50, { disk: 4, begin: 8, disks: 4 });

/** Behind the contents of a member whose flags say so; the lengths have 8 bytes where the member's are wide. */
export const DESCRIPTOR = new ZipRecord(0x08074b50, { crc32: 4, packed: 4, size: 4 });
export const WIDE_DESCRIPTOR = new ZipRecord(0x08074b50, { crc32: 4, packed: 8, size: 8 });
