/** Writes core's functions out as CUDA: `opt_exp` of float and double and so on, and `opt_exp_wide`, which is float's yet to be rounded. */
import { FUNCTION_NAMES, functionDefinition, indent, writeStatements } from "@opt/core/backend";
import { cuda, TYPE } from "./dialect";

/** Included by native/cuda/kernels/elements.cuh. */
export function writeFunctions(): string {
  const functions = FUNCTION_NAMES.map((name) => {
    const { program, dtype, reach } = functionDefinition(name);
    const { uniform, element } = writeStatements(program, cuda, dtype, {
      scalar: () => "",
      load: (_slot, operand) => operand,
      store: (_slot, _name, value) => `return ${value};`,
    });
    const head = (type: string, called: string) =>
      `__device__ __forceinline__ ${type} ${called}(${program.buffers.map((operand) => `${type} ${operand}`).join(", ")}) {`;
    const operands = program.buffers.join(", ");
    const library = name === "weight" ? "exp" : name;
    return [
      head(TYPE[dtype], dtype === "f32" ? `opt_${name}` : `opt_${name}_wide`),
      ...(reach === undefined ? [] : [`  if (fabs(x) > ${reach}.0) return ${name}(x);`]),
      ...indent([...uniform, ...element]),
      "}",
      ...(dtype === "f32"
        ? []
        : [`${head("float", `opt_${name}`)} return __double2float_rn(opt_${name}_wide(${operands})); }`]),
      `${head("double", `opt_${name}`)} return ${library}(${operands}); }`,
      "",
    ].join("\n");
  });
  return ["// Written by @opt/kernels-cuda from core's rule/functions.", "", ...functions].join("\n");
}
