/** What a pickle builds beside plain values: names and calls as they are noted, and what Python tells apart and JavaScript does not. */

/** A name that the pickle refers to (a class or function): noted, never looked up. Foreign is what no tensor or plain value needs. */
export class PickleGlobal {
  constructor(
    readonly name: string,
    readonly isForeign = false,
    readonly kind?: RecordKind,
  ) {}
}

/** What is kept of the objects of a class of which files have millions. */
export interface RecordKind {
  /** Its objects are made of one tuple of counts: of those that are equal one is kept. */
  readonly isNumbers?: boolean;
  /** By its state. */
  readonly built?: (state: PickleState) => object;
}

export type PickleState = Pick<ReadonlyMap<unknown, unknown>, "get">;

/** Stands for an object until its state is there. */
export class PickleRecord {
  built: object | undefined;
  /** The last three: how `PickleStack` stood before. */
  constructor(
    readonly build: (state: PickleState) => object,
    readonly budget: number,
    readonly kept: number,
    readonly escapes: number,
  ) {}
}

const NONE: readonly unknown[] = [];

/** The state of a record: keys and values in turn, as few as an object has. */
export class PickleFields {
  pairs: readonly unknown[] = NONE;

  get(key: unknown): unknown {
    let i = this.pairs.length - 2;
    while (i >= 0 && this.pairs[i] !== key) i -= 2;
    return i < 0 ? undefined : this.pairs[i + 1];
  }
}

/** What would have been a call: its callable and arguments, and what was built onto the result. Nothing ran. */
export class PickleCall {
  state: unknown;
  // Most calls have neither, and files have millions of calls.
  #entries: Map<unknown, unknown> | undefined;
  #items: unknown[] | undefined;
  constructor(
    readonly callable: string,
    readonly args: readonly unknown[],
    readonly isForeign = false,
  ) {}

  get entries(): Map<unknown, unknown> {
    this.#entries ??= new Map();
    return this.#entries;
  }

  /** Items appended to the result, when it is a kind of list or set. */
  get items(): unknown[] {
    this.#items ??= [];
    return this.#items;
  }
}

/** An object that lies outside of the pickle, by its id. */
export class PicklePersistent {
  constructor(readonly id: unknown) {}
}

export class PickleTuple {
  constructor(readonly items: readonly unknown[]) {}
}

/** A tuple of counts alone. */
export class PickleNumbers extends PickleTuple {
  declare readonly items: readonly number[];
}

export class PickleSet {
  constructor(readonly items: unknown[] = []) {}
}

/** A float that JavaScript would take for an integer: `1.0` is no `1` in Python, and is written back as it was. */
export class PickleFloat {
  constructor(readonly value: number) {}
}

/** A long string or bytes object that stays in the source until it is asked for. */
export class PickleRange {
  constructor(
    readonly kind: "bytes" | "text",
    readonly offset: number,
    readonly length: number,
  ) {}
}

/** A dict whose keys are texts. */
export const dictionary = (members: Readonly<Record<string, unknown>>) =>
  new Map<unknown, unknown>(Object.entries(members));
