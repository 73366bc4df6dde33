#include "decoder.hpp"

#include <algorithm>
#include <stdexcept>

namespace tds {

namespace {

/** The largest number of branches of a plan that are evaluated at once. */
constexpr uint32_t WAVE_BRANCHES = 64;

/** The sequences whose state llama.cpp can save, 0 the first. It asserts that a context may have as many outputs. */
constexpr uint32_t SAVED_SEQUENCES = 16;

/** llama.cpp keeps room for the whole vocabulary for each output, even when it is not computed. */
uint32_t outputs_limit(const llama_model * model) {
    constexpr uint32_t output_bytes = 32u << 20;
    const auto vocabulary = static_cast<uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    return std::clamp<uint32_t>(output_bytes / (vocabulary * sizeof(float)), SAVED_SEQUENCES, 128);
}

}  // namespace

Decoder::Decoder(const DecoderShared & shared, const DecoderOptions & options)
    : shared_(shared),
      options_(options),
      outputs_limit_(outputs_limit(shared.model)),
      readout_(shared.model, *shared.output_matrix),
      context_(create_context()),
      cells_(context_.get(), {options.plan_cells, options.separate ? 1 : WAVE_BRANCHES, options.aligned}),
      composer_({options.batch_tokens, outputs_limit_, options.separate}, cells_, *shared.counters) {
    warm_up();
}

Decoder::Context Decoder::create_context() {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = options_.cells;
    params.n_batch = options_.batch_tokens;
    params.n_ubatch = options_.batch_tokens;
    // Batches may have more sequences: a unified cache takes all that llama.cpp has, `llama_max_parallel_sequences`.
    params.n_seq_max = SAVED_SEQUENCES;
    params.n_outputs_max = outputs_limit_;
    params.kv_unified = true;
    params.flash_attn_type = shared_.on_gpu ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_F16;
    params.type_v = GGML_TYPE_F16;
    params.no_perf = true;
    // Sliding-window models keep their whole prefix, so that later waves find it.
    params.swa_full = true;
    params.abort_callback = on_abort;
    params.abort_callback_data = this;
    readout_.observe(params);
    Context context(llama_init_from_model(shared_.model, params), llama_free);
    if (!context) throw std::runtime_error("the context could not be created: give it fewer tokens or more memory");
    // Encoders and diffusion models have none: a branch would not see its prefix.
    if (!llama_get_memory(context.get())) throw std::runtime_error("this kind of model keeps no cache of a record");
    return context;
}

bool Decoder::on_abort(void * data) { return static_cast<Decoder *>(data)->shared_.closing->load(); }

/** Decodes once, to learn the source of the logits and the state of occupied cells. */
void Decoder::warm_up() {
    batch_.start_sequences({0});
    for (uint32_t i = 0; i < TILE_CELLS; i++) batch_.add_token(0, static_cast<int32_t>(i), i + 1 == TILE_CELLS);
    const size_t computed = shared_.kernels ? shared_.kernels->computed() : 0;
    if (!decode()) throw std::runtime_error("the model could not be evaluated");
    readout_.learn();
    const size_t own = shared_.kernels ? shared_.kernels->computed() - computed : 0;
    // Our kernels compute each row by itself, whatever the number of rows and of threads.
    has_fixed_bits_ = !shared_.on_gpu && readout_.stops_at_hidden() && own == readout_.size_dependent_operations();
    if (!shared_.on_gpu) minimum_tokens_ = has_fixed_bits_ ? KernelBackend::COLUMNS_MIN : GGML_ROWS_MIN;
    cells_.learn_reservations();
}

bool Decoder::can_start(const Task & task) const {
    if (plans_.empty()) return true;
    if (options_.separate || task.alone || plans_.front()->task->alone) return false;
    size_t tokens = 0;
    // A plan counts for at most half of a decode, so that others fit beside a long one.
    for (const auto & plan : plans_) tokens += std::min<size_t>(plan->waiting_tokens(), options_.batch_tokens / 2);
    return tokens < options_.fill_tokens && cells_.has_room_for(task.plan);
}

bool Decoder::is_reading_prefix_of(const Task & task) const {
    const auto & prefix = task.plan.prefix;
    if (cells_.bytes_of(prefix.size()) >= shared_.prefixes->capacity_bytes()) return false;
    return std::any_of(plans_.begin(), plans_.end(), [&](const auto & plan) {
        return plan->waiting_prefix() > 0 && plan->task->scope == task.scope && plan->task->plan.prefix == prefix;
    });
}

void Decoder::start(std::unique_ptr<Task> & task) {
    if (plans_.empty()) cells_.clear();
    RunningPlan & plan = *plans_.emplace_back(std::make_unique<RunningPlan>());
    plan.task = std::move(task);
    plan.task->logits.assign(plan.task->plan.logit_count, 0.0f);
    plan.cells = cells_.take(plan.task->plan);
    restore_prefix(plan);
    start_wave(plan);
}

void Decoder::restore_prefix(RunningPlan & plan) {
    const auto & prefix = plan.task->plan.prefix;
    const PrefixState state = shared_.prefixes->find(plan.task->scope, prefix);
    if (!state) return;
    cells_.restore_prefix(plan.cells, *state, prefix.size());
    plan.prefix_done = prefix.size();
    shared_.counters->reused_tokens += prefix.size();
}

void Decoder::keep_prefix(const RunningPlan & plan) {
    const auto & prefix = plan.task->plan.prefix;
    const size_t capacity = shared_.prefixes->capacity_bytes();
    if (prefix.empty() || capacity == 0) return;
    PrefixState state = cells_.save_prefix(plan.cells, capacity);
    if (state) shared_.prefixes->put(plan.task->scope, prefix, std::move(state));
    shared_.counters->kept_prefix_bytes = shared_.prefixes->bytes();
}

void Decoder::start_wave(RunningPlan & plan) {
    const auto & branches = plan.task->plan.branches;
    cells_.start_wave(plan.cells);
    plan.wave.clear();
    plan.shares_prefix = false;
    while (plan.has_branches_left()) {
        const Branch & branch = branches[plan.next_branch];
        const auto cells = cells_.take_branch(plan.cells, branch);
        if (!cells) break;
        plan.wave.push_back({&branch, *cells});
        plan.next_branch++;
    }
}

void Decoder::finish(RunningPlan & plan) {
    plan.is_finished = true;
    cells_.release(plan.cells);
}

std::unique_ptr<Task> Decoder::withdraw(uint64_t id) {
    for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
        if ((*plan)->task->id != id) continue;
        finish(**plan);
        std::unique_ptr<Task> task = std::move((*plan)->task);
        plans_.erase(plan);
        return task;
    }
    return nullptr;
}

std::vector<std::unique_ptr<Task>> Decoder::withdraw_all() {
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.reserve(plans_.size());
    for (auto & plan : plans_) {
        // A finished plan has already returned its task.
        if (plan->task) tasks.push_back(std::move(plan->task));
    }
    batch_.clear();
    plans_.clear();
    cells_.clear();
    return tasks;
}

bool Decoder::decode() {
    // The batch is cleared, because it points to plans that may be gone before the next one.
    const std::unique_ptr<DecodeBatch, void (*)(DecodeBatch *)> cleared(&batch_, [](DecodeBatch * it) { it->clear(); });
    count_batch();
    shared_.counters->padding_tokens += batch_.add_padding(minimum_tokens_, cells_.padding_sequence());
    const bool has_fault = options_.fault_token >= 0 && batch_.has_token(options_.fault_token);
    if (has_fault || !compute()) return false;
    if (!readout_.has_states(batch_.output_count())) return false;
    if (minimum_tokens_ > 0) cells_.remove_padding();
    check_faults();
    readout_.read(context_.get(), batch_);
    return true;
}

/** To be called before padding is added. */
void Decoder::count_batch() const {
    Counters & counters = *shared_.counters;
    size_t size = 0;
    while (size + 1 < BATCH_SIZES && (size_t{1} << size) < batch_.size()) size++;
    counters.batches[size]++;
    counters.batched_tokens += batch_.size();
    counters.decodes++;
}

bool Decoder::compute() {
    const ComputeThreads::Lease lease(*shared_.threads, has_fixed_bits_);
    llama_set_n_threads(context_.get(), lease.count(), lease.count());
    llama_attach_threadpool(context_.get(), lease.pool(), lease.pool());
    if (shared_.kernels) shared_.kernels->set_threads(lease.count(), lease.pool());
    shared_.counters->threads = static_cast<uint64_t>(lease.count());
    if (llama_decode(context_.get(), batch_.view()) != 0) return false;
    llama_synchronize(context_.get());
    return true;
}

void Decoder::check_faults() const {
    if (options_.read_fault_token < 0) return;
    for (const BatchRead & at : batch_.reads()) {
        const auto & tokens = at.read->tokens;
        if (std::find(tokens.begin(), tokens.end(), options_.read_fault_token) != tokens.end()) {
            throw std::runtime_error("the logits could not be read");
        }
    }
}

Returned Decoder::step() {
    Returned returned;
    std::string fault = "The model could not evaluate the plan.";
    try {
        if (advance(returned.finished)) return returned;
    } catch (const std::exception & error) {
        fault = error.what();
    }
    Returned abandoned = abandon(fault);
    for (auto & task : abandoned.finished) returned.finished.push_back(std::move(task));
    returned.interrupted = std::move(abandoned.interrupted);
    return returned;
}

Returned Decoder::abandon(const std::string & fault) {
    const bool is_alone = plans_.size() == 1;
    Returned returned;
    for (auto & task : withdraw_all()) {
        task->alone = true;
        task->outcome = Outcome::failed;
        task->message = fault;
        (is_alone ? returned.finished : returned.interrupted).push_back(std::move(task));
    }
    return returned;
}

bool Decoder::advance(std::vector<std::unique_ptr<Task>> & finished) {
    const std::vector<RunningPlan *> complete_prefixes = composer_.compose(plans_, batch_);
    if (!decode()) return false;
    for (const RunningPlan * plan : complete_prefixes) keep_prefix(*plan);
    for (const auto & plan : plans_) {
        if (plan->waiting_tokens() > 0) continue;
        if (plan->has_branches_left()) {
            cells_.end_wave(plan->cells);
            start_wave(*plan);
        } else {
            finish(*plan);
            plan->task->outcome = Outcome::answered;
            finished.push_back(std::move(plan->task));
        }
    }
    plans_.erase(std::remove_if(plans_.begin(), plans_.end(), [](const auto & plan) { return plan->is_finished; }),
                 plans_.end());
    return true;
}

}  // namespace tds
