/** Writes the fields of launches out as C++ structs, which kernels take by value: 64 bits each, as `ArgumentWriter` packs them. */
import type { FieldStruct, SizeType, SliceType } from "@opt/core/backend";
import { FIELDS } from "../fields";

type Described = Pick<FieldStruct<never>, "struct" | "isTyped" | "fields">;

const TYPES: Readonly<Record<SizeType | SliceType, string>> = {
  integer: "Index",
  number: "double",
  flag: "Index",
  bytes: "void*",
  reads: "const T*",
  writes: "T*",
  readsIndices: "const int*",
  writesIndices: "int*",
};

function struct({ struct: name, isTyped, fields }: Described): string {
  return [
    ...(isTyped ? ["template <typename T>"] : []),
    `struct ${name}Fields {`,
    ...fields.map(({ name, type }) => `  ${typeof type === "string" ? TYPES[type] : `${type.struct}Fields`} ${name};`),
    "};",
    "",
  ].join("\n");
}

export function writeFields(): string {
  const all: readonly Described[] = Object.values(FIELDS);
  const groups = all.flatMap(({ fields }) => fields.flatMap(({ type }) => (typeof type === "string" ? [] : [type])));
  return [
    "// Written by @opt/kernels-cuda from core's fields of launches.",
    "#pragma once",
    '#include "elements.cuh"',
    "",
    ...new Set([...groups, ...all].map(struct)),
  ].join("\n");
}
