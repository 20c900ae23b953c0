/** Writes the fields of commands out as C++: a struct of each that reads them, and the function that runs a command. */
import { commandFormat, DESCRIPTIONS } from "../commands";
import { CPP_TYPES, type FieldDescription } from "../fields";
import { ENUMERATIONS, OPS } from "../numbers";

const READS: Partial<Record<keyof typeof CPP_TYPES, string>> = {
  integer: "integer()",
  number: "number()",
  flag: "flag()",
  list: "list()",
};

const capital = (name: string) => name[0]!.toUpperCase() + name.slice(1);
const constant = (name: string) => name.replace(/([A-Z])/g, "_$1").toUpperCase();

function struct({ struct: name, isTyped, fields }: FieldDescription): string {
  const types = fields.map(({ type }) =>
    typeof type === "string" ? CPP_TYPES[type] : `${type.struct}Fields${type.isTyped ? "<T>" : ""}`,
  );
  const read = (k: number) => {
    const { type } = fields[k]!;
    if (typeof type !== "string") return "command";
    return `command.${READS[type] ?? `pointer<${types[k]!.slice(0, -1)}>()`}`;
  };
  return [
    ...(isTyped ? ["template <typename T>"] : []),
    `struct ${name}Fields {`,
    ...fields.map((field, k) => `  ${types[k]} ${field.name};`),
    `  explicit ${name}Fields(Command& command) : ${fields.map((field, k) => `${field.name}(${read(k)})`).join(", ")} {}`,
    "};",
    "",
  ].join("\n");
}

/** For the addon and the kernels: the format of commands and the numbers of names. */
export function writeProtocol(): string {
  const enumerations = Object.entries(ENUMERATIONS).map(
    ([name, names]) => `enum class ${name} { ${names.map(constant).join(", ")} };`,
  );
  return [
    "// Written by @opt/kernels-cpu: what native code and TypeScript agree on.",
    "#pragma once",
    "",
    "namespace opt {",
    "",
    `constexpr unsigned COMMAND_FORMAT = ${commandFormat()}u;`,
    ...enumerations,
    `#define OPT_OPS(OP) ${OPS.map((op) => `OP(${capital(op)})`).join(" ")}`,
    "",
    "}  // namespace opt",
    "",
  ].join("\n");
}

/** For the kernels: the structs, and `runLaunch`. A kernel's file defines `run` of its struct. */
export function writeCommands(): string {
  const groups = DESCRIPTIONS.flatMap(({ fields }) =>
    fields.flatMap(({ type }) => (typeof type === "string" ? [] : [type])),
  );
  const cases = DESCRIPTIONS.map(({ struct: name, isTyped }, opcode) => {
    const call = (type: string) => `run(${name}Fields${type}(command), threads)`;
    return `    case ${opcode}: return ${isTyped ? `command.flag() ? ${call("<double>")} : ${call("<float>")}` : call("")};`;
  });
  return [
    "// Written by @opt/kernels-cpu from its description of commands.",
    "#pragma once",
    '#include "kernels/command.h"',
    "",
    "namespace opt::OPT_ISA {",
    "",
    ...new Set([...groups, ...DESCRIPTIONS].map(struct)),
    ...DESCRIPTIONS.flatMap(({ struct: name, isTyped }) =>
      (isTyped ? ["<float>", "<double>"] : [""]).map(
        (type) => `Status run(const ${name}Fields${type}& given, int threads);`,
      ),
    ),
    "",
    "inline Status runLaunch(int64_t opcode, Command& command, int threads) {",
    "  switch (opcode) {",
    ...cases,
    "  }",
    "  return Status::BAD_COMMAND;",
    "}",
    "",
    "}  // namespace opt::OPT_ISA",
    "",
  ].join("\n");
}
