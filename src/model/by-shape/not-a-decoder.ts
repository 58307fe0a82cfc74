type Config = Readonly<Record<string, unknown>>;

/** Keys that only models have which are more than one stack of attention and feed-forward layers, and what they tell. */
const SIGNS: readonly (readonly [key: RegExp, what: string])[] = [
  [/^(vision|audio|text|thinker|encoder|decoder)_config$/, 'it is made of several models'],
  [/^(num_(local_|routed_)?experts|n_routed_experts|moe_|num_experts_per_tok)/, 'it has experts'],
  [
    /^(ssm_|mamba_|d_state$|state_size$|conv_kernel$|d_conv$|linear_num_|time_mix|layers_block_type$|block_types$|lru_)/,
    'it has recurrent layers',
  ],
  [/(_cycles|_layers_per_stack)$/, 'its layers run several times'],
  [/^(kv_lora_rank|q_lora_rank)$/, 'it has latent attention'],
  [/^(type_vocab_size|is_encoder_decoder|d_kv|decoder_layers|encoder_layers)$/, 'it is an encoder, or has one'],
];

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false && value !== 0;

/** Why a config of an unknown type is not one of a plain decoder; undefined: nothing speaks against it. */
export function whyNotADecoder(config: Config): string | undefined {
  for (const [key, value] of Object.entries(config)) {
    if (!isSet(value)) continue;
    const sign = SIGNS.find(([pattern]) => pattern.test(key));
    if (sign) return `${sign[1]} (${key})`;
  }
  const { architectures } = config;
  const names = Array.isArray(architectures) ? architectures.filter((name) => typeof name === 'string') : [];
  if (names.length > 0 && !names.some((name) => /(CausalLM|LMHeadModel)$/.test(name))) {
    return `its class is ${names.join(', ')}, not one of a causal language model`;
  }
  for (const key of ['hidden_size', 'num_hidden_layers', 'num_attention_heads', 'vocab_size']) {
    if (!Number.isSafeInteger(config[key])) return `its config does not say ${key}`;
  }
  return names.length > 0 ? undefined : 'its config does not say its class (architectures)';
}
