#include "lane.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "ggml-backend.h"

namespace tds {

namespace {

constexpr uint32_t TILE = 64;
/** Within a tile sums are made over groups of at most so many cells: which groups a branch has is nothing to them. */
constexpr uint32_t GROUP = 16;
/** Walls are built from blocks of 64 << 0 … 64 << 4 cells. */
constexpr int WALL_SIZES = 5;
/** Branches of one plan that are read at once, and the cells that they may take unless one alone needs more. */
constexpr uint32_t WAVE_BRANCHES = 64;
constexpr uint32_t WAVE_CELLS = 1024;

uint32_t round_up(uint32_t count, uint32_t unit) { return (count + unit - 1) / unit * unit; }

uint32_t wall_blocks(uint32_t cells) {
    uint32_t blocks = 0;
    for (int size = WALL_SIZES - 1; size >= 0; size--) {
        blocks += cells / (TILE << size);
        cells %= TILE << size;
    }
    return blocks;
}

}  // namespace

Lane::Lane(const LaneShared & shared, const LaneOptions & options) : shared_(shared), options_(options) {
    const llama_vocab * vocabulary = llama_model_get_vocab(shared_.model);
    vocabulary_ = llama_vocab_n_tokens(vocabulary);
    embedding_ = llama_model_n_embd(shared_.model);
    // llama.cpp keeps room for the whole vocabulary for each output, even when it is not computed.
    constexpr uint32_t output_bytes = 32u << 20;
    outputs_limit_ = std::clamp<uint32_t>(output_bytes / (static_cast<uint32_t>(vocabulary_) * 4), 16, 128);

    llama_context_params params = llama_context_default_params();
    params.n_ctx = options_.cells;
    params.n_batch = options_.batch_tokens;
    params.n_ubatch = options_.batch_tokens;
    params.n_seq_max = 16;
    params.n_outputs_max = outputs_limit_;
    params.kv_unified = true;
    params.n_threads = shared_.threads;
    params.n_threads_batch = shared_.threads;
    params.flash_attn_type = shared_.on_gpu ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_F16;
    params.type_v = GGML_TYPE_F16;
    params.no_perf = true;
    // Sliding-window models keep their whole prefix, so that later waves find it.
    params.swa_full = true;
    params.cb_eval = on_node;
    params.cb_eval_user_data = this;
    params.abort_callback = on_abort;
    params.abort_callback_data = this;
    context_ = llama_init_from_model(shared_.model, params);
    if (!context_) throw std::runtime_error("the context could not be created: give it fewer tokens or more memory");
    options_.cells = llama_n_ctx(context_);
    memory_ = llama_get_memory(context_);
    if (shared_.threadpool) llama_attach_threadpool(context_, shared_.threadpool, shared_.threadpool);
    filler_sequence_ = static_cast<llama_seq_id>(llama_max_parallel_sequences()) - 1;
    try {
        clear();
        warm_up();
    } catch (...) {
        llama_free(context_);
        throw;
    }
}

Lane::~Lane() { llama_free(context_); }

/** Called for each node of a graph: whether it is wanted, and then, when it is computed, whether to go on. */
bool Lane::on_node(ggml_tensor * node, bool ask, void * data) {
    Lane & lane = *static_cast<Lane *>(data);
    const bool is_hidden = std::strcmp(node->name, "result_norm") == 0;
    if (ask) {
        if (!lane.stops_at_hidden_ && std::strcmp(node->name, "result_output") == 0) {
            lane.output_matrix_ = node->src[0];
            lane.output_is_plain_ = node->op == GGML_OP_MUL_MAT && node->src[1] &&
                                    std::strcmp(node->src[1]->name, "result_norm") == 0 &&
                                    node->src[0]->ne[0] == lane.embedding_ && node->src[0]->ne[1] == lane.vocabulary_;
        }
        return lane.stops_at_hidden_ && is_hidden;
    }
    lane.hidden_.resize(static_cast<size_t>(ggml_nelements(node)));
    if (!lane.hidden_.empty()) ggml_backend_tensor_get(node, lane.hidden_.data(), 0, ggml_nbytes(node));
    return false;
}

bool Lane::on_abort(void * data) { return static_cast<Lane *>(data)->shared_.closing->load(); }

/** Decodes once, to learn where the logits come from and what an empty cell looks like. */
void Lane::warm_up() {
    sequence_sets_.push_back({0});
    for (uint32_t i = 0; i < TILE; i++) add_token(0, static_cast<int32_t>(i), i + 1 == TILE);
    if (!decode()) throw std::runtime_error("the model could not be evaluated");
    stops_at_hidden_ = output_is_plain_ && Readout::can_read(output_matrix_);
    if (stops_at_hidden_) shared_.readout->set_output(output_matrix_);

    // Cells of models with positions in several dimensions cannot be moved, which walls are made by.
    options_.aligned = options_.aligned && llama_memory_can_shift(memory_);
    if (options_.aligned) {
        // Sequence 0 is doubled: a copy of its cells goes to sequence 1, is moved behind it, and joins it.
        for (int size = 0; size < WALL_SIZES; size++) {
            std::vector<uint8_t> state(llama_state_seq_get_size(context_, 0));
            if (llama_state_seq_get_data(context_, state.data(), state.size(), 0) != state.size()) {
                throw std::runtime_error("the cache's state could not be read");
            }
            if (size + 1 < WALL_SIZES) {
                if (llama_state_seq_set_data(context_, state.data(), state.size(), 1) == 0) {
                    throw std::runtime_error("the cache's state could not be written");
                }
                llama_memory_seq_add(memory_, 1, -1, -1, static_cast<llama_pos>(TILE << size));
                llama_memory_seq_cp(memory_, 1, 0, -1, -1);
                llama_memory_seq_rm(memory_, 1, -1, -1);
            }
            wall_states_.push_back(std::move(state));
        }
    }
    clear();
}

ggml_backend_dev_t Lane::device() const {
    // Elsewhere the logits' first operand is no weight, and gone when the graph is.
    if (!output_is_plain_ || !output_matrix_->buffer) return nullptr;
    ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(output_matrix_->buffer);
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    // The CPU's memory says nothing of its device, or names the GPU that reads it fast.
    const bool is_cpu = !device || type == ggml_backend_dev_host_buffer_type(device);
    return is_cpu ? ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) : device;
}

void Lane::clear() {
    llama_memory_clear(memory_, false);
    used_cells_ = 0;
    free_sequences_.clear();
    for (llama_seq_id sequence = filler_sequence_ - 1; sequence > transfer_sequence_; sequence--) {
        free_sequences_.push_back(sequence);
    }
}

uint32_t Lane::rounded(size_t tokens) const {
    const auto count = static_cast<uint32_t>(tokens);
    return options_.aligned ? round_up(count, TILE) : count;
}

/** The first cell for a branch, `used` cells from a tile's start: in the tile's rest if it has room for all of it. */
uint32_t Lane::place(uint32_t used, const Branch & branch) const {
    if (!options_.aligned) return used;
    const uint32_t first_cell = round_up(used, GROUP);
    return first_cell % TILE + branch.tokens.size() <= TILE ? first_cell : round_up(used, TILE);
}

Lane::Need Lane::need(const Plan & plan) const {
    uint32_t longest = 0, wave = 0, branches = 0;
    const uint32_t branches_limit = options_.separate ? 1 : WAVE_BRANCHES;
    for (const Branch & branch : plan.branches) {
        const auto cells = static_cast<uint32_t>(branch.tokens.size());
        longest = std::max(longest, cells);
        const uint32_t end = place(wave, branch) + cells;
        if (branches < branches_limit && end <= WAVE_CELLS) {
            wave = end;
            branches++;
        }
    }
    const uint32_t prefix = rounded(plan.prefix.size());
    const uint32_t room = prefix < usable_cells() ? usable_cells() - prefix : 0;
    wave = std::max(rounded(longest), std::min(rounded(wave), room / TILE * TILE));
    uint32_t sequences = 1 + std::min<uint32_t>(branches_limit, static_cast<uint32_t>(plan.branches.size()));
    if (options_.aligned) sequences += wall_blocks(prefix) + wall_blocks(wave);
    return {prefix, wave, sequences};
}

bool Lane::fits(const Plan & plan) const {
    const Need needed = need(plan);
    return needed.prefix_cells + needed.wave_cells <= std::min(options_.plan_cells, usable_cells()) &&
           needed.sequences < static_cast<uint32_t>(filler_sequence_);
}

bool Lane::can_admit(const Task & task) const {
    if (jobs_.empty()) return true;
    if (options_.separate || task.alone || jobs_.front()->task->alone) return false;
    size_t tokens = 0;
    // A plan is sure of half of a decode only, so that there is always room for others beside a long one.
    for (const auto & job : jobs_) tokens += std::min<size_t>(waiting_tokens(*job), options_.batch_tokens / 2);
    if (tokens >= options_.fill_tokens) return false;
    const Need needed = need(task.plan);
    return used_cells_ + needed.prefix_cells + needed.wave_cells <= usable_cells() &&
           needed.sequences <= free_sequences_.size();
}

/** Tokens of a plan that are not in a decode yet; of its branches, those of the wave that is being read. */
size_t Lane::waiting_tokens(const Job & job) {
    size_t tokens = job.task->plan.prefix.size() - job.prefix_done;
    for (const Slot & slot : job.wave) tokens += slot.branch->tokens.size() - slot.tokens_done;
    return tokens;
}

llama_seq_id Lane::take_sequence() {
    if (free_sequences_.empty()) throw std::logic_error("no sequence is left");
    const llama_seq_id sequence = free_sequences_.back();
    free_sequences_.pop_back();
    return sequence;
}

/**
 * Takes the lowest free cells, which must be these. llama.cpp gives a batch the lowest free cells and nothing else
 * can be asked of it; with every other cell held, the ones that are opened are the ones that it takes.
 */
std::vector<Lane::Wall> Lane::build_walls(uint32_t first_cell, uint32_t cells) {
    std::vector<Wall> walls;
    for (int size = WALL_SIZES - 1; size >= 0; size--) {
        for (const uint32_t block = TILE << size; cells >= block; cells -= block, first_cell += block) {
            const auto & state = wall_states_[static_cast<size_t>(size)];
            const Wall wall = {take_sequence(), first_cell, block};
            if (llama_state_seq_set_data(context_, state.data(), state.size(), wall.sequence) == 0) {
                throw std::runtime_error("cells could not be held");
            }
            walls.push_back(wall);
        }
    }
    return walls;
}

void Lane::open_walls(const std::vector<Wall> & walls, uint32_t first_cell, uint32_t cells) {
    const uint32_t last_cell = first_cell + cells;
    for (const Wall & wall : walls) {
        const uint32_t from = std::max(first_cell, wall.first_cell);
        const uint32_t to = std::min(last_cell, wall.first_cell + wall.cells);
        if (from >= to) continue;
        llama_memory_seq_rm(memory_, wall.sequence, static_cast<llama_pos>(from - wall.first_cell),
                            static_cast<llama_pos>(to - wall.first_cell));
    }
}

void Lane::admit(std::unique_ptr<Task> & task) {
    if (jobs_.empty()) clear();
    Job * job = jobs_.emplace_back(std::make_unique<Job>()).get();
    job->task = std::move(task);
    job->task->logits.assign(job->task->plan.logit_count, 0.0f);
    const Need needed = need(job->task->plan);
    job->sequence = take_sequence();
    job->prefix_cell = used_cells_;
    job->wave_cell = used_cells_ + needed.prefix_cells;
    job->wave_cells = needed.wave_cells;
    used_cells_ += needed.prefix_cells + needed.wave_cells;
    if (options_.aligned) job->prefix_walls = build_walls(job->prefix_cell, needed.prefix_cells);
    restore_prefix(*job);
    start_wave(*job);
}

void Lane::restore_prefix(Job & job) {
    const auto & prefix = job.task->plan.prefix;
    const PrefixState state = shared_.prefixes->find(job.task->scope, prefix);
    if (!state) return;
    open_walls(job.prefix_walls, job.prefix_cell, static_cast<uint32_t>(prefix.size()));
    if (llama_state_seq_set_data(context_, state->data(), state->size(), job.sequence) == 0) {
        throw std::runtime_error("a prefix could not be restored");
    }
    job.prefix_done = prefix.size();
    shared_.counters->reused_tokens += prefix.size();
}

void Lane::keep_prefix(Job & job) {
    const auto & prefix = job.task->plan.prefix;
    if (prefix.empty() || !shared_.prefixes->has_room_for(0)) return;
    llama_memory_seq_cp(memory_, job.sequence, transfer_sequence_, -1, -1);
    PrefixState state = written_state(transfer_sequence_);
    llama_memory_seq_rm(memory_, transfer_sequence_, -1, -1);
    if (state) shared_.prefixes->put(job.task->scope, prefix, std::move(state));
    shared_.counters->kept_prefix_bytes = shared_.prefixes->bytes();
}

/** What the cache memory holds of a sequence; null where it is too large to be kept. */
PrefixState Lane::written_state(llama_seq_id sequence) {
    const size_t size = llama_state_seq_get_size(context_, sequence);
    if (!shared_.prefixes->has_room_for(size)) return nullptr;
    try {
        auto state = std::make_shared<std::vector<uint8_t>>(size);
        return llama_state_seq_get_data(context_, state->data(), size, sequence) == size ? state : nullptr;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void Lane::start_wave(Job & job) {
    const auto & branches = job.task->plan.branches;
    if (options_.aligned) job.wave_walls = build_walls(job.wave_cell, job.wave_cells);
    job.branched = false;
    uint32_t used = 0;
    const size_t limit = options_.separate ? 1 : WAVE_BRANCHES;
    while (job.next_branch < branches.size() && job.wave.size() < limit) {
        const Branch & branch = branches[job.next_branch];
        const uint32_t first_cell = place(used, branch);
        used = first_cell + static_cast<uint32_t>(branch.tokens.size());
        if (used > job.wave_cells) break;
        job.wave.push_back({&branch, take_sequence(), first_cell, 0, 0});
        job.next_branch++;
    }
}

void Lane::end_wave(Job & job) {
    for (const Slot & slot : job.wave) {
        llama_memory_seq_rm(memory_, slot.sequence, -1, -1);
        free_sequences_.push_back(slot.sequence);
    }
    for (const Wall & wall : job.wave_walls) {
        llama_memory_seq_rm(memory_, wall.sequence, -1, -1);
        free_sequences_.push_back(wall.sequence);
    }
    job.wave.clear();
    job.wave_walls.clear();
}

/** Gives the prefix's cells so far to the branches that are read next. */
void Lane::share_prefix(Job & job) {
    if (job.prefix_done > 0) {
        for (const Slot & slot : job.wave) llama_memory_seq_cp(memory_, job.sequence, slot.sequence, -1, -1);
    }
    job.branched = true;
}

/**
 * Aligned, a plan's cells stay taken until all plans in the lane are done: a hole below a running plan would be
 * filled before that plan's own cells.
 */
void Lane::end_job(Job & job) {
    job.finished = true;
    if (options_.aligned) return;
    end_wave(job);
    llama_memory_seq_rm(memory_, job.sequence, -1, -1);
    free_sequences_.push_back(job.sequence);
    used_cells_ -= rounded(job.task->plan.prefix.size()) + job.wave_cells;
}

std::unique_ptr<Task> Lane::withdraw(uint64_t id) {
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        if ((*job)->task->id != id) continue;
        end_job(**job);
        std::unique_ptr<Task> task = std::move((*job)->task);
        jobs_.erase(job);
        return task;
    }
    return nullptr;
}

std::vector<std::unique_ptr<Task>> Lane::withdraw_all() {
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.reserve(jobs_.size());
    for (auto & job : jobs_) {
        // A job that has finished has given its task back.
        if (job->task) tasks.push_back(std::move(job->task));
    }
    clear_batch();
    jobs_.clear();
    clear();
    return tasks;
}

void Lane::add_token(int32_t token, int32_t position, bool output) {
    tokens_.push_back(token);
    positions_.push_back(position);
    sequence_counts_.push_back(static_cast<int32_t>(sequence_sets_.back().size()));
    sequences_.push_back(sequence_sets_.back().data());
    output_flags_.push_back(output ? 1 : 0);
    output_count_ += output ? 1 : 0;
    has_fault_ |= token == options_.fault_token;
}

/** Adds up to `limit` tokens of the prefix. Returns whether all of it is in the batch or before it. */
bool Lane::add_prefix(Job & job, size_t limit) {
    const auto & prefix = job.task->plan.prefix;
    const size_t count = std::min(prefix.size() - job.prefix_done, limit);
    const bool is_last = job.prefix_done + count == prefix.size();
    std::vector<llama_seq_id> & sequences = sequence_sets_.emplace_back(1, job.sequence);
    if (is_last && !job.branched && !options_.separate) {
        share_prefix(job);
        for (const Slot & slot : job.wave) sequences.push_back(slot.sequence);
    }
    open_walls(job.prefix_walls, job.prefix_cell + static_cast<uint32_t>(job.prefix_done), static_cast<uint32_t>(count));
    for (size_t i = 0; i < count; i++, job.prefix_done++) {
        add_token(prefix[job.prefix_done], static_cast<int32_t>(job.prefix_done), false);
    }
    shared_.counters->decoded_tokens += count;
    return is_last;
}

/** Adds tokens of the plan's branches. Returns false when the batch is full. */
bool Lane::add_branches(Job & job) {
    if (!job.branched) share_prefix(job);
    const auto prefix_length = static_cast<int32_t>(job.task->plan.prefix.size());
    for (Slot & slot : job.wave) {
        const Branch & branch = *slot.branch;
        const size_t first = slot.tokens_done;
        sequence_sets_.emplace_back(1, slot.sequence);
        bool is_full = false;
        while (slot.tokens_done < branch.tokens.size()) {
            const bool is_read = branch.reads[slot.reads_done].index == static_cast<int32_t>(slot.tokens_done);
            is_full = tokens_.size() == options_.batch_tokens || (is_read && output_count_ == outputs_limit_);
            if (is_full) break;
            for (; slot.reads_done < branch.reads.size() &&
                   branch.reads[slot.reads_done].index == static_cast<int32_t>(slot.tokens_done);
                 slot.reads_done++) {
                outputs_.push_back({&job, &branch, slot.reads_done, static_cast<int32_t>(tokens_.size())});
            }
            add_token(branch.tokens[slot.tokens_done], prefix_length + static_cast<int32_t>(slot.tokens_done),
                      is_read);
            slot.tokens_done++;
        }
        const auto count = static_cast<uint32_t>(slot.tokens_done - first);
        open_walls(job.wave_walls, job.wave_cell + slot.first_cell + static_cast<uint32_t>(first), count);
        shared_.counters->decoded_tokens += count;
        if (is_full) return false;
    }
    return true;
}

/**
 * Small batches take other kernels, with other bits: ggml's CPU attention below 64 rows, its matrix product for one.
 */
void Lane::add_fillers() {
    const size_t count = tokens_.size();
    sequence_sets_.emplace_back(1, filler_sequence_);
    for (int32_t i = 0; tokens_.size() < options_.minimum_tokens; i++) add_token(0, i, false);
    shared_.counters->filler_tokens += tokens_.size() - count;
    if (output_count_ == 1 && tokens_.size() > 1) {
        output_flags_[output_flags_[0] == 0 ? 0 : 1] = 1;
        output_count_++;
    }
}

bool Lane::decode() {
    // What is left of a batch would point to jobs that are gone by the next one.
    const std::unique_ptr<Lane, void (*)(Lane *)> emptied(this, [](Lane * lane) { lane->clear_batch(); });
    const bool ok = run_batch();
    if (!ok) shared_.counters->failed_decodes++;
    return ok;
}

bool Lane::run_batch() {
    add_fillers();
    llama_batch batch = {};
    batch.n_tokens = static_cast<int32_t>(tokens_.size());
    batch.token = tokens_.data();
    batch.pos = positions_.data();
    batch.n_seq_id = sequence_counts_.data();
    batch.seq_id = sequences_.data();
    batch.logits = output_flags_.data();

    shared_.counters->decodes++;
    bool ok = !has_fault_ && llama_decode(context_, batch) == 0;
    if (ok) {
        llama_synchronize(context_);
        const size_t states = static_cast<size_t>(output_count_) * static_cast<size_t>(embedding_);
        ok = !stops_at_hidden_ || hidden_.size() == states;
    }
    if (ok && options_.minimum_tokens > 0) llama_memory_seq_rm(memory_, filler_sequence_, -1, -1);
    if (ok && !outputs_.empty()) read_outputs();
    return ok;
}

void Lane::clear_batch() {
    tokens_.clear();
    positions_.clear();
    sequence_counts_.clear();
    sequences_.clear();
    sequence_sets_.clear();
    output_flags_.clear();
    outputs_.clear();
    output_count_ = 0;
    has_fault_ = false;
}

void Lane::read_outputs() {
    for (const Output & output : outputs_) {
        const auto & tokens = output.branch->reads[output.read].tokens;
        if (std::find(tokens.begin(), tokens.end(), options_.read_fault_token) != tokens.end()) {
            throw std::runtime_error("the logits could not be read");
        }
    }
    if (!stops_at_hidden_) {
        for (const Output & output : outputs_) {
            const Read & read = output.branch->reads[output.read];
            const float * logits = llama_get_logits_ith(context_, output.batch_index);
            for (size_t i = 0; i < read.tokens.size(); i++) {
                output.job->task->logits[read.offset + i] = logits[read.tokens[i]];
            }
        }
        return;
    }
    std::vector<size_t> rows(output_flags_.size());
    for (size_t i = 1; i < rows.size(); i++) rows[i] = rows[i - 1] + (output_flags_[i - 1] ? 1 : 0);
    std::vector<int32_t> wanted;
    for (const Output & output : outputs_) {
        const auto & tokens = output.branch->reads[output.read].tokens;
        wanted.insert(wanted.end(), tokens.begin(), tokens.end());
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    const std::vector<float> logits = shared_.readout->logits(hidden_, output_count_, wanted);
    for (const Output & output : outputs_) {
        const Read & read = output.branch->reads[output.read];
        const float * row = logits.data() + rows[static_cast<size_t>(output.batch_index)] * wanted.size();
        for (size_t i = 0; i < read.tokens.size(); i++) {
            const auto at = std::lower_bound(wanted.begin(), wanted.end(), read.tokens[i]) - wanted.begin();
            output.job->task->logits[read.offset + i] = row[at];
        }
    }
}

void Lane::step(std::vector<std::unique_ptr<Task>> & finished, std::vector<std::unique_ptr<Task>> & interrupted) {
    std::string fault = "The model could not evaluate the plan.";
    try {
        if (advance(finished)) return;
    } catch (const std::exception & error) {
        fault = error.what();
    }
    abandon(fault, finished, interrupted);
}

void Lane::abandon(const std::string & fault, std::vector<std::unique_ptr<Task>> & finished,
                   std::vector<std::unique_ptr<Task>> & interrupted) {
    const bool is_own = jobs_.size() == 1;
    for (auto & task : withdraw_all()) {
        task->alone = true;
        task->outcome = Outcome::failed;
        task->message = fault;
        (is_own ? finished : interrupted).push_back(std::move(task));
    }
}

bool Lane::advance(std::vector<std::unique_ptr<Task>> & finished) {
    std::vector<Job *> prefix_read;
    size_t later_tokens = 0;
    for (const auto & job : jobs_) later_tokens += waiting_tokens(*job);
    for (const auto & job : jobs_) {
        later_tokens -= waiting_tokens(*job);
        if (job->prefix_done < job->task->plan.prefix.size()) {
            // First come first served, but half of the decode is for those that came later.
            const size_t room = options_.batch_tokens - tokens_.size();
            const size_t kept = std::min<size_t>(later_tokens, options_.batch_tokens / 2);
            if (kept >= room) continue;
            if (!add_prefix(*job, room - kept)) continue;
            prefix_read.push_back(job.get());
            if (options_.separate) break;
        }
        if (!add_branches(*job)) break;
    }
    if (!decode()) return false;
    for (Job * job : prefix_read) keep_prefix(*job);
    for (const auto & job : jobs_) {
        const bool wave_done = std::all_of(job->wave.begin(), job->wave.end(), [](const Slot & slot) {
            return slot.tokens_done == slot.branch->tokens.size();
        });
        if (!wave_done || job->prefix_done < job->task->plan.prefix.size()) continue;
        if (job->next_branch < job->task->plan.branches.size()) {
            end_wave(*job);
            start_wave(*job);
        } else {
            end_job(*job);
            job->task->outcome = Outcome::answered;
            finished.push_back(std::move(job->task));
        }
    }
    jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(), [](const auto & job) { return job->finished; }),
                jobs_.end());
    return true;
}

}  // namespace tds
