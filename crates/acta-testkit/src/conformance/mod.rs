//! What a ledger must do, a function a rule. A rule that came of a failure in the field is named after it.

pub mod changes;
pub mod claiming;
pub mod delivering;
pub mod input;
pub mod keys;
pub mod leases;
pub mod operating;
pub mod ordering;
pub mod settling;
pub mod watching;

/// Runs every rule on a provider, a test each: `conformance!(my_provider);`
#[macro_export]
macro_rules! conformance {
    ($provider:path) => {
        $crate::each_rule! { $provider,
            ordering: [
                c001_a_retry_keeps_the_place_of_its_lane_s_head,
                c003_one_of_a_lane_is_active_and_listings_agree,
                c004_a_blocked_lane_shadows_no_other,
                c006_c007_the_last_loss_of_a_head_frees_its_lane,
                c010_priority_orders_heads_and_unlaned_jobs_strictly,
                c011_cancelling_a_head_or_a_blocked_member_leaves_the_lane_in_order,
                c012_the_nearest_instant_is_told_whatever_was_enqueued_first,
                order_is_place_and_a_requeued_job_keeps_it,
                priority_passes_nobody_in_a_lane,
                a_delay_a_pause_a_wait_and_a_loss_hold_the_head_s_place,
                a_claim_never_hands_out_two_unfinished_members_of_a_lane,
                promotion_honours_the_next_one_s_own_delay_and_pause,
                lanes_of_two_namespaces_are_two_lanes,
            ],
            leases: [
                c009_a_lane_is_held_as_long_as_its_head_s_holder_renews,
                c013_a_zombie_changes_nothing,
                c014_a_lapsed_lease_is_its_holder_s_until_somebody_takes_over,
                c022_what_is_delayed_or_waits_holds_no_lease,
                c024_c026_a_job_that_kills_its_robots_ends_after_six_losses,
                c028_a_lapsed_lease_needs_no_event_but_the_next_claim,
                c035_each_job_has_the_lease_it_asks_for,
                c045_a_lost_job_is_in_one_state_at_all_times,
                a_lease_comes_from_the_claim_the_job_the_definition_the_queue_the_family,
                a_heartbeat_never_shortens_and_tells_a_cancel,
                recover_does_what_a_claim_does_but_claims_nothing,
                a_settle_forgets_losses,
                expiry_ends_what_was_never_claimed,
                an_expired_job_is_never_handed_out,
                a_claim_brings_in_at_most_a_thousand_due_jobs,
            ],
            settling: [
                c017_a_job_has_one_end,
                c060_a_wave_of_nothing_is_settled_at_once,
                c134_failures_keep_kind_message_and_code,
                a_repeated_settle_gets_the_first_answer_and_no_other_outcome,
                each_of_a_wave_is_judged_by_its_own_fence,
                a_failure_is_retried_after_the_back_off_while_attempts_remain,
                business_failures_end_at_once_but_in_a_job_queue,
                waits_snoozes_and_releases_give_the_attempt_back_but_not_the_fence,
                a_wait_ends_by_its_signal_or_its_deadline,
                a_signal_that_comes_first_is_kept_and_consumed_once,
                a_wait_for_nothing_is_refused,
                exchange_settles_and_claims_in_one,
                settling_what_was_never_claimed_is_refused,
                the_robot_s_name_settles_where_no_fence_is_given,
                steps_are_kept_once,
                start_makes_a_job_running,
                a_success_at_the_first_attempt_leaves_no_history,
                history_tells_failures_and_losses,
            ],
            claiming: [
                c033_a_claim_hands_out_what_it_returns_and_no_more,
                c147_names_leave_other_definitions_alone,
                a_claim_stamps_who_and_when,
                an_expected_job_is_claimed_or_nothing_is,
                nothing_has_a_reason,
                a_paused_queue_or_lane_gives_nothing_but_settles_go_on,
                under_a_pause_only_requested_cancels_are_carried_out,
                a_trace_tells_what_was_looked_at,
                counts_beyond_the_bounds_are_refused,
            ],
            changes: [
                a_job_that_can_be_claimed_wakes_whoever_waits,
                a_settle_that_promotes_the_lane_s_next_wakes,
                whoever_saw_an_old_number_is_answered_at_once,
                a_retry_a_resume_and_a_signal_wake,
                nothing_new_wakes_nobody,
            ],
            operating: [
                c032_a_success_beats_a_requested_cancel_and_nothing_else_does,
                c139_a_held_job_can_be_cancelled_by_force,
                cancelling_ends_at_once_what_nobody_works_on,
                a_paused_job_is_no_candidate_and_keeps_state_and_place,
                restart_begins_anew_at_the_end,
                restart_is_refused_while_another_live_job_has_the_key,
                a_pause_tells_since_when_by_whom_and_why,
                a_restart_leaves_the_key_to_whoever_has_it,
                definitions_and_reasons_are_bounded,
                explain_sees_what_the_next_claim_would_see,
                postpone_moves_the_instant_and_keeps_the_place,
                reprioritise_is_for_plain_namespaces,
                skip_is_for_heads,
                explain_names_the_blocker,
                c141_every_final_state_is_pruned_after_its_retention,
                pages_follow_each_other,
            ],
            watching: [
                a_worker_is_listed_with_what_it_said_until_it_is_gone,
                a_silent_worker_is_lost_until_it_is_heard_of,
                workers_unseen_for_a_day_are_forgotten,
                a_worker_is_seen_by_the_heartbeats_of_its_jobs,
                each_minute_tells_what_happened_in_it,
                a_wave_s_ends_and_promotions_are_told_apart,
                minutes_are_kept_for_a_day,
                one_queue_is_shown_alone,
            ],
            keys: [
                c053_c130_a_duplicate_is_told_the_holder_and_whether_the_payload_differs,
                c054_a_batch_is_like_single_calls,
                a_duplicate_s_name_stays_unknown,
                c055_a_key_lives_as_long_as_is_written_down,
                a_key_held_while_live_is_free_after_the_end,
                keys_of_two_namespaces_are_two_keys,
            ],
            delivering: [
                c104_deliveries_keep_the_order_of_their_call,
                c109_a_delivery_arrives_once,
                a_delivery_is_known_as_long_as_a_tombstone_lives,
                a_delivery_s_job_may_have_a_key_of_its_own,
                a_closed_delivery_does_not_arrive,
                a_refused_delivery_is_named_and_leaves_nothing,
            ],
            input: [
                c062_c065_payloads_keep_every_byte,
                c067_c083_labels_are_literal,
                a_trace_is_kept_with_the_job,
                c070_names_that_differ_by_case_are_refused,
                c099_instants_are_kept_to_the_millisecond,
                c129_a_batch_with_a_bad_job_adds_nothing_and_names_it,
                a_priority_is_refused_in_the_queue_families,
                an_item_has_the_contract_s_fields_first,
                definitions_fill_what_a_job_leaves_open,
            ],
        }
    };
}

/// A module a theme, a test a rule.
#[doc(hidden)]
#[macro_export]
macro_rules! each_rule {
    ($provider:path, $($theme:ident: [$($rule:ident,)*],)*) => {
        $(mod $theme {
            $(#[test]
            fn $rule() {
                let desk = $crate::Desk::open($provider);
                $crate::block_on($crate::conformance::$theme::$rule(desk));
            })*
        })*
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_that_is_written_is_run() {
        let list = include_str!("mod.rs");
        let themes = [
            include_str!("changes.rs"),
            include_str!("claiming.rs"),
            include_str!("input.rs"),
            include_str!("keys.rs"),
            include_str!("leases.rs"),
            include_str!("operating.rs"),
            include_str!("ordering.rs"),
            include_str!("settling.rs"),
            include_str!("watching.rs"),
        ];
        for theme in themes {
            for rule in theme.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name = rule.split('(').next().unwrap_or(rule);
                assert!(list.contains(&format!("{name},\n")), "{name} is not in the list");
            }
        }
    }
}
