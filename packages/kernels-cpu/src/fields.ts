/**
 * The fields of a command, in order: how TypeScript writes each, and its type in C++. The build makes a struct of them
 * (generate/write-commands.ts). Those that are the same on all devices of native code are core's (`fieldsOf`).
 */
import type { ComputeDType, FieldStruct, SizeType, Slice, SliceType } from "@opt/core/backend";
import type { CommandWriter } from "./command";

/** Types in C++, by which native code reads them. `T` is the launch's dtype. */
export const CPP_TYPES = {
  integer: "int64_t",
  number: "double",
  flag: "bool",
  code: "const double*",
  list: "Numbers",
  bytes: "char*",
  doubles: "double*",
  reads: "const T*",
  writes: "T*",
  readsIndices: "const int32_t*",
  writesIndices: "int32_t*",
} as const satisfies Record<SizeType | SliceType, string> & Record<string, string>;

/** What C++ knows of fields. `struct`: their name there. `isTyped`: whether that is a template over the launch's dtype. */
export interface FieldDescription {
  readonly struct: string;
  readonly isTyped: boolean;
  readonly fields: readonly { readonly name: string; readonly type: FieldType }[];
}

type FieldType = keyof typeof CPP_TYPES | FieldDescription;

/** Names and types as text: what both sides must agree on. */
export function signatureOf({ struct, fields }: FieldDescription): string {
  const each = fields.map(({ name, type }) => `${name}:${typeof type === "string" ? type : signatureOf(type)}`);
  return `${struct}(${each.join()})`;
}

type NamesOf<Source, Value> = {
  [Name in keyof Source]: Source[Name] extends Value ? Name : never;
}[keyof Source] &
  string;

type Count<Source> = (source: Source) => number;
type Write<Source> = (to: CommandWriter, source: Source) => void;

/** Fields that are read from a source of one type. */
export class Fields<Source> implements FieldDescription {
  readonly fields: { name: string; type: FieldType }[] = [];
  isTyped = false;
  /** One may write several fields: eager launches wait for each call. */
  private readonly writers: Write<Source>[] = [];

  constructor(readonly struct: string) {}

  integers(...names: NamesOf<Source, number>[]): this {
    return this.#add(names, "integer", (to, source) => {
      for (let i = 0; i < names.length; i++) to.number(source[names[i]!] as number);
    });
  }

  number(name: string, type: "integer" | "number" | "code", value: Count<Source>): this {
    return this.field(name, type, (to, source) => to.number(value(source)));
  }

  flag(name: string, value: (source: Source) => boolean): this {
    return this.field(name, "flag", (to, source) => to.flag(value(source)));
  }

  /** The fields that all devices of native code take of a launch. */
  shared(struct: FieldStruct<Source>): this {
    this.isTyped = struct.isTyped;
    this.fields.push(...struct.fields);
    this.writers.push((to, source) => struct.write(to, source));
    return this;
  }

  /** Slices of the launch's dtype that it reads, of `count` elements each. */
  reads(count: Count<Source>, ...names: NamesOf<Source, Slice>[]): this {
    return this.#slices("reads", count, names);
  }

  /** The same of what it writes. */
  writes(count: Count<Source>, ...names: NamesOf<Source, Slice>[]): this {
    return this.#slices("writes", count, names);
  }

  /** Numbers, of which `write` may write any count. */
  list(name: string, write: Write<Source>): this {
    return this.field(name, "list", (to, source) => to.counted(write, source));
  }

  /** JavaScript's own arrays. */
  doubles(...names: NamesOf<Source, Float64Array>[]): this {
    return this.#add(names, "doubles", (to, source) => {
      for (let i = 0; i < names.length; i++) to.array(source[names[i]!] as Float64Array);
    });
  }

  group<Part>(name: string, fields: Fields<Part>, part: (source: Source) => Part): this {
    return this.field(name, fields, (to, source) => fields.write(to, part(source)));
  }

  field(name: string, type: FieldType, write: Write<Source>): this {
    return this.#add([name], type, write);
  }

  write(to: CommandWriter, source: Source): void {
    const { writers } = this;
    for (let i = 0; i < writers.length; i++) writers[i]!(to, source);
  }

  #slices(type: "reads" | "writes", count: Count<Source>, names: NamesOf<Source, Slice>[]): this {
    this.isTyped = true;
    return this.#add(names, type, (to, source) => {
      const { dtype } = (source as { kernel: { spec: { dtype: ComputeDType } } }).kernel.spec;
      const needed = count(source);
      for (let i = 0; i < names.length; i++) to.slice(source[names[i]!] as Slice, dtype, needed);
    });
  }

  #add(names: readonly string[], type: FieldType, write: Write<Source>): this {
    for (const name of names) this.fields.push({ name, type });
    this.writers.push(write);
    return this;
  }
}
