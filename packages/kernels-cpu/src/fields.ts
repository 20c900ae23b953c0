/**
 * The fields of a command, in order: how TypeScript writes each, and its type in C++. The build makes a struct of them
 * (generate/write-commands.ts).
 */
import type { ComputeDType, Slice } from "@opt/core/backend";
import type { CommandWriter } from "./command";

/** Types in C++, by which native code reads them. `T` is the launch's dtype. */
export const CPP_TYPES = {
  integer: "int64_t",
  number: "double",
  flag: "bool",
  code: "const double*",
  list: "Numbers",
  bytes: "char*",
  reads: "const T*",
  writes: "T*",
  readsIndices: "const int32_t*",
  writesIndices: "int32_t*",
} as const;

/** What C++ knows of fields. `struct`: their name there. `isTyped`: whether that is a template over the launch's dtype. */
export interface Described {
  readonly struct: string;
  readonly isTyped: boolean;
  readonly fields: readonly { readonly name: string; readonly type: keyof typeof CPP_TYPES | Described }[];
}

/** Names and types as text: what both sides must agree on. */
export function signatureOf({ struct, fields }: Described): string {
  const each = fields.map(({ name, type }) => `${name}:${typeof type === "string" ? type : signatureOf(type)}`);
  return `${struct}(${each.join()})`;
}

interface Field<Source> {
  readonly name: string;
  readonly type: keyof typeof CPP_TYPES | Described;
  write(to: CommandWriter, source: Source): void;
}

type NamesOf<Source, Value> = {
  [Name in keyof Source]: Source[Name] extends Value ? Name : never;
}[keyof Source] &
  string;

type Count<Source> = (source: Source) => number;

/** Fields that are read from a source of one type. */
export class Fields<Source> implements Described {
  readonly fields: Field<Source>[] = [];
  isTyped = false;

  constructor(readonly struct: string) {}

  integers(...names: NamesOf<Source, number>[]): this {
    for (const name of names) this.number(name, "integer", (source) => source[name] as number);
    return this;
  }

  number(name: string, type: "integer" | "number" | "code", value: Count<Source>): this {
    return this.field(name, type, (to, source) => to.number(value(source)));
  }

  flag(name: string, value: (source: Source) => boolean): this {
    return this.field(name, "flag", (to, source) => to.flag(value(source)));
  }

  /** Slices of the launch's dtype that it reads, of each `count` elements. `indices` are of i32. */
  reads(count: Count<Source>, ...names: NamesOf<Source, Slice>[]): this {
    return this.slices("reads", count, names);
  }

  /** The same of what it writes. */
  writes(count: Count<Source>, ...names: NamesOf<Source, Slice>[]): this {
    return this.slices("writes", count, names);
  }

  /** Numbers, of which `write` may write any count. */
  list(name: string, write: (to: CommandWriter, source: Source) => void): this {
    return this.field(name, "list", (to, source) => to.counted(write, source));
  }

  group<Part>(name: string, fields: Fields<Part>, part: (source: Source) => Part): this {
    return this.field(name, fields, (to, source) => fields.write(to, part(source)));
  }

  field(name: string, type: Field<Source>["type"], write: Field<Source>["write"]): this {
    this.fields.push({ name, type, write });
    return this;
  }

  write(to: CommandWriter, source: Source): void {
    const { fields } = this;
    for (let i = 0; i < fields.length; i++) fields[i]!.write(to, source);
  }

  private slices(type: "reads" | "writes", count: Count<Source>, names: NamesOf<Source, Slice>[]): this {
    this.isTyped = true;
    for (const name of names) {
      const isIndices = name === "indices";
      this.field(name, isIndices ? `${type}Indices` : type, (to, source) => {
        to.slice(source[name] as Slice, isIndices ? "i32" : dtypeOf(source), count(source));
      });
    }
    return this;
  }
}

const dtypeOf = (source: unknown) => (source as { kernel: { spec: { dtype: ComputeDType } } }).kernel.spec.dtype;
