/** Writes the functions of float32 out as C++: `expInDouble` and so on, yet to be rounded, and `weightInFloat`. */
import { FUNCTION_NAMES, functionDefinition, indent, writeStatements } from "@opt/core/backend";
import { cpp } from "./dialect";

/** Included by native/cpu/src/kernels/functions.h. */
export function writeFunctions(): string {
  const functions = FUNCTION_NAMES.map((name) => {
    const { program, dtype, reach } = functionDefinition(name);
    const [type, suffix] = dtype === "f32" ? ["float", "InFloat"] : ["double", "InDouble"];
    const { uniform, element } = writeStatements(program, cpp, dtype, {
      scalar: () => "",
      load: (_slot, operand) => operand,
      store: (_slot, _name, value) => `return ${value};`,
    });
    return [
      ...(reach === undefined ? [] : [`constexpr float ${name.toUpperCase()}_REACH = ${reach};`]),
      `OPT_INLINE ${type} ${name}${suffix}(${program.buffers.map((operand) => `${type} ${operand}`).join(", ")}) {`,
      `  using T = ${type};`,
      ...indent([...uniform, ...element]),
      "}",
      "",
    ].join("\n");
  });
  return ["// Written by @opt/kernels-cpu from core's rule/functions.", "", ...functions].join("\n");
}
