/** What a width of vectors allows: the rule in C++, by one thread; and what threads can gain, by several with processors of their own. */
import { adamRule } from "@opt/adam-amsgrad/rules";
import type { Rule } from "@opt/core";
import { nadamRule } from "@opt/nadam/rules";
import { writeRule } from "../../../packages/kernels-cpu/src/generate/write-rules";
import type { Contender } from "../contender";
import type { OptimizerName, OptimizerWork } from "../optimizer-work";
import { openProcess } from "../process-session";
import { compileLoop } from "./memory-limit";

const RULES: { readonly [Name in OptimizerName]?: Rule } = {
  AdamW: adamRule({ amsgrad: false, decay: "decoupled", smallBeta1: false }),
  AMSGrad: adamRule({ amsgrad: true, decay: "none", smallBeta1: false }),
  NAdam: nadamRule({ decay: "none", smallBeta1: false }),
};

/** Some scalars of a step: what they are changes no time. */
const SCALARS: Readonly<Record<string, number>> = {
  decay: 0.99999,
  oneMinusBeta1: 0.1,
  beta2: 0.999,
  oneMinusBeta2: 0.001,
  negStepSize: -0.002,
  biasCorrection2: 0.01,
  biasCorrection2Sqrt: 0.1,
  eps: 1e-8,
  negGradStep: -0.0001,
  negMomentumStep: -0.002,
};

const headerOf = (rule: Rule) => `#include "kernels/arithmetic.h"
#include "kernels/loops.h"
namespace opt::OPT_ISA {
${writeRule(rule)}
}
#define RULE opt::OPT_ISA::rule_${rule.hash}<float>
constexpr int BUFFERS = ${rule.buffers.length};
constexpr float SCALARS[] = {${rule.scalars.map((scalar) => SCALARS[scalar])}};
`;

/** @param width bits of a vector */
export function nativeLoop(width: 128 | 512, threads = 1): Contender<OptimizerWork> {
  return {
    name: `C++ loop, ${width} bits, ${threads === 1 ? "one thread" : `${threads} threads`}`,
    tolerance: null,
    async open(work) {
      const { optimizer, tensors } = work;
      const rule = RULES[optimizer];
      if (rule === undefined || tensors > 1) return "written for AdamW, AMSGrad and NAdam, one tensor";
      const program = compileLoop(headerOf(rule), ["-DOPT_ISA=bench", `-mprefer-vector-width=${width}`]);
      return program === "" ? "g++ is missing" : openProcess(program, [String(threads)], work);
    },
  };
}
