/** PyTorch judges numbers: OPT_TORCH_PYTHON names a Python that has it. */
export const torchPython = process.env.OPT_TORCH_PYTHON || undefined;

/** Why what asks it is skipped: the end of its title. */
export const withoutTorch = torchPython === undefined ? " (skipped: OPT_TORCH_PYTHON is not set)" : "";
