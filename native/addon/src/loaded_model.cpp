#include "loaded_model.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "model_file.hpp"

namespace tds {

namespace {

/** The largest cells of a small plan. On a CPU, the decoder of small plans has no more. */
constexpr uint32_t SMALL_CELLS = 4096;
/** A GPU evaluates many small plans at once. */
constexpr uint32_t GPU_CELLS = 16384;
/** Cells beyond the longest plan: rounding of prefix and wave, more than one branch at a time, and padding. */
constexpr uint32_t SPARE_CELLS = 2 * TILE_CELLS + WAVE_CELLS + GGML_ROWS_MIN;

uint32_t large_cells(const ModelOptions & options) {
    return static_cast<uint32_t>(options.context_tokens) + SPARE_CELLS;
}

bool fills_decodes(const ModelOptions & options, bool on_gpu) { return on_gpu || options.full_decodes; }

/** Returns the options that both decoders share. */
DecoderOptions common_options(const ModelOptions & options, bool on_gpu) {
    DecoderOptions common;
    common.aligned = !on_gpu && !options.deterministic;
    common.separate = options.deterministic;
    common.fault_token = options.fault_token;
    common.read_fault_token = options.read_fault_token;
    return common;
}

DecoderOptions small_options(const ModelOptions & options, bool on_gpu) {
    DecoderOptions small = common_options(options, on_gpu);
    small.plan_cells = SMALL_CELLS;
    small.cells = std::min(on_gpu ? GPU_CELLS : SMALL_CELLS, large_cells(options));
    small.batch_tokens = on_gpu ? 2048 : 512;
    small.fill_tokens = fills_decodes(options, on_gpu) ? small.batch_tokens : GGML_ROWS_MIN;
    return small;
}

DecoderOptions large_options(const ModelOptions & options, bool on_gpu) {
    DecoderOptions large = common_options(options, on_gpu);
    large.cells = large_cells(options);
    large.batch_tokens = on_gpu ? 1024 : 128;
    // If deterministic, a plan's bits must not depend on the decoder.
    if (options.deterministic) large.batch_tokens = small_options(options, on_gpu).batch_tokens;
    large.fill_tokens = fills_decodes(options, on_gpu) ? large.batch_tokens : GGML_ROWS_MIN;
    return large;
}

/**
 * Returns the bytes of prefixes that may be kept. llama.cpp saves only the window of a sliding-window layer. A restored
 * window lies in other tiles, and the last bits of logits differ.
 */
size_t prefix_bytes(const ModelOptions & options, const llama_model * model) {
    return options.deterministic && llama_model_n_swa(model) > 0 ? 0 : options.prefix_cache_bytes;
}

}  // namespace

LoadedModel::LoadedModel(const ModelOptions & options, Counters & counters, const std::atomic<bool> & closing,
                         ModelFacts & facts)
    : gpu_(choose_gpu(options, facts)),
      model_(load(options, gpu_)),
      threads_(options.threads),
      prefixes_(prefix_bytes(options, model_.get())) {
    const bool on_gpu = gpu_ != nullptr;
    if (!on_gpu) kernels_ = KernelBackend::create(options.kernels, threads_.most());

    DecoderShared shared;
    shared.model = model_.get();
    shared.output_matrix = &output_matrix_;
    shared.kernels = kernels_.get();
    shared.prefixes = &prefixes_;
    shared.counters = &counters;
    shared.closing = &closing;
    shared.threads = &threads_;
    shared.on_gpu = on_gpu;
    create_decoders(options, shared);
    for (const auto & decoder : decoders_) counters.kv_cache_bytes += decoder->cache_bytes();

    // The device that computes the model, which may differ from the wanted one.
    ggml_backend_dev_t device = decoders_.front()->device();
    facts.device = backend_name(device ? device : gpu_);
    facts.context_tokens = options.context_tokens;
    facts.vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
    facts.decoder_tokens = small_options(options, on_gpu).batch_tokens * (fills_decodes(options, on_gpu) ? 2 : 1);
}

LoadedModel::~LoadedModel() = default;

/** Null for the CPU. */
ggml_backend_dev_t LoadedModel::choose_gpu(const ModelOptions & options, ModelFacts & facts) {
    load_backends(options.backends);
    const bool wants_gpu = !options.backends.gpu.empty();
    ggml_backend_dev_t gpu = wants_gpu ? find_gpu() : nullptr;
    if (wants_gpu && !gpu) facts.missing_gpu = missing_gpu(options.backends);
    if (options.require_gpu && !gpu) throw std::runtime_error(facts.missing_gpu);
    return gpu;
}

LoadedModel::Model LoadedModel::load(const ModelOptions & options, ggml_backend_dev_t gpu) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = gpu ? -1 : 0;
    ggml_backend_dev_t no_devices[] = {nullptr};
    if (!gpu) params.devices = no_devices;
    // Our kernels cannot read the layouts that ggml has for its own ones, which are slower for Q8_0.
    if (!gpu && options.kernels != Instructions::NONE && has_only_q8_weights(options.model_path)) {
        params.use_extra_bufts = false;
    }
    Model model(load_model_file(options.model_path, params), llama_model_free);
    if (llama_model_has_encoder(model.get()) || llama_model_is_recurrent(model.get()) ||
        llama_model_is_hybrid(model.get())) {
        throw std::runtime_error("this kind of model cannot share a prefix between branches");
    }
    return model;
}

void LoadedModel::create_decoders(const ModelOptions & options, const DecoderShared & shared) {
    std::optional<KernelBackend::Offer> offer;
    if (kernels_) offer.emplace(*kernels_);
    decoders_.push_back(std::make_unique<Decoder>(shared, small_options(options, shared.on_gpu)));
    if (large_cells(options) <= SMALL_CELLS) return;
    decoders_.push_back(std::make_unique<Decoder>(shared, large_options(options, shared.on_gpu)));
}

size_t LoadedModel::decoder_of(const Plan & plan) const {
    size_t index = 0;
    while (index + 1 < decoders_.size() && !decoders_[index]->fits(plan)) index++;
    return index;
}

}  // namespace tds
